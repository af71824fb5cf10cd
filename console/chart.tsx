/** Charts (uPlot) in the colors of the page, with a text alternative for people who cannot see them. */
import { useEffect, useReducer, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

export interface Series {
  readonly label: string;
  readonly values: readonly (number | null)[];
  /**
   * Style of the series. `line`: a normal line; `soft`: a reference line; `edge`: an edge of a band, the
   * lower edge first, then the upper edge.
   */
  readonly kind: 'line' | 'soft' | 'edge';
}

interface ChartProps {
  /** Heading above the chart. */
  readonly title: string;
  /** A sentence that describes the content of the chart. */
  readonly label: string;
  /** Positions on the x axis: seconds since the epoch or, if `isTime` is false, any increasing numbers. */
  readonly places: readonly number[];
  readonly isTime: boolean;
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
  /** True for amounts: the axis starts at 0, so that their proportions are visible. */
  readonly isFromZero?: boolean;
  /** True if the line is interrupted where a value is missing. */
  readonly hasGaps?: boolean;
}

const HEIGHT = 220;
/** Minimum distance between two time labels, in pixels. */
const TIME_SPACE = 90;
const DAY_SECONDS = 86_400;

/**
 * Formats a time as the page does: UTC, 24 hours.
 *
 * @param step seconds between two labels
 */
const timeText = (seconds: number, step: number): string => {
  const text = new Date(seconds * 1000).toISOString();
  if (step >= DAY_SECONDS) return text.slice(0, 10);
  return text.slice(11, step >= 60 ? 16 : 19);
};
const colourOf = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name);

function optionsOf(
  { series, format, isTime, isFromZero, hasGaps }: ChartProps,
  width: number,
): uPlot.Options {
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
        spanGaps: hasGaps !== true,
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
  // The chart is drawn with fixed colors, so it is drawn again when the page switches between dark and light
  // mode.
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
  return (
    <figure>
      <figcaption>
        <h3>{props.title}</h3>
      </figcaption>
      <div class="chart" ref={box} role="img" aria-label={props.label} />
    </figure>
  );
}
