/** Charts (uPlot): drawn in the colours of the page, and told in words to whoever doesn't see them. */
import { useEffect, useReducer, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

export interface Series {
  readonly label: string;
  readonly values: readonly (number | null)[];
  /** `line`; `soft`: one that others are compared with; `edge`: of a band, first the lower one, then the upper one. */
  readonly kind: 'line' | 'soft' | 'edge';
}

interface ChartProps {
  /** What it shows, in a sentence. */
  readonly label: string;
  /** Seconds since the epoch, or with `isTime` false any rising numbers. */
  readonly places: readonly number[];
  readonly isTime: boolean;
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
  /** Amounts: the axis begins at 0, so that their proportions are seen. */
  readonly isFromZero?: boolean;
}

const HEIGHT = 220;
/** Between two labels of the time, pixels. */
const TIME_SPACE = 90;
const DAY_SECONDS = 86_400;

/** Times as the rest of the page has them: UTC, 24 hours. @param step seconds between two labels */
const timeText = (seconds: number, step: number): string => {
  const text = new Date(seconds * 1000).toISOString();
  if (step >= DAY_SECONDS) return text.slice(0, 10);
  return text.slice(11, step >= 60 ? 16 : 19);
};
const colourOf = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name);

function optionsOf({ series, format, isTime, isFromZero }: ChartProps, width: number): uPlot.Options {
  const [text, line, accent, band] = ['--soft-text', '--line', '--accent', '--band'].map(colourOf);
  const strokes = { line: accent!, soft: text!, edge: band! };
  const axis = { stroke: text!, grid: { stroke: line!, width: 1 }, ticks: { stroke: line!, width: 1 } };
  const edges = series.flatMap(({ kind }, i) => (kind === 'edge' ? [i + 1] : []));
  return {
    width,
    height: HEIGHT,
    cursor: { y: false },
    legend: { live: false },
    scales: {
      x: { time: isTime },
      ...(isFromZero === true ? { y: { range: (_plot, _low, high) => [0, Math.max(1, high * 1.1)] } } : {}),
    },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'UTC'),
    axes: [
      isTime
        ? {
            ...axis,
            space: TIME_SPACE,
            values: (_plot, ticks, _axis, _space, step) => ticks.map((tick) => timeText(tick, step)),
          }
        : axis,
      { ...axis, size: 70, values: (_plot, ticks) => ticks.map((tick) => format(tick)) },
    ],
    series: [
      {},
      ...series.map(({ label, kind, values }) => ({
        label,
        stroke: strokes[kind],
        width: kind === 'line' ? 2 : 1,
        spanGaps: true,
        points: { show: kind === 'line' && values.filter((value) => value !== null).length < 40 },
      })),
    ],
    bands: edges.flatMap((low, i) =>
      i % 2 === 0 ? [{ series: [edges[i + 1]!, low] as [number, number], fill: band! }] : [],
    ),
  };
}

export function Chart(props: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  // Colours are drawn: where the page turns dark or light, it is drawn again.
  const [, redraw] = useReducer((times: number, _change: null) => times + 1, 0);
  useEffect(() => {
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const onTurn = (): void => redraw(null);
    dark.addEventListener('change', onTurn);
    return () => dark.removeEventListener('change', onTurn);
  }, []);
  useEffect(() => {
    const element = box.current!;
    const data = [props.places, ...props.series.map(({ values }) => values)] as uPlot.AlignedData;
    const plot = new uPlot(optionsOf(props, element.clientWidth), data, element);
    const resized = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }));
    resized.observe(element);
    return () => {
      resized.disconnect();
      plot.destroy();
    };
  });
  return <div class="chart" ref={box} role="img" aria-label={props.label} />;
}
