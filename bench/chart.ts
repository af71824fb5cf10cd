/** Two kinds of charts as SVG text: bars made of parts, and lines. Numbers stand beside what is drawn. */

const COLOURS = ['#2563eb', '#dc2626', '#059669', '#d97706', '#7c3aed', '#0891b2', '#be185d', '#4b5563'];
const WIDTH = 760;

export const escaped = (text: string): string =>
  text.replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]!);

const colour = (place: number): string => COLOURS[place % COLOURS.length]!;
const at = (value: number): string => value.toFixed(1);

/** As many digits as a reader wants. */
export const short = (value: number): string =>
  value >= 10_000
    ? Math.round(value).toLocaleString('en')
    : value >= 100
      ? value.toFixed(0)
      : value >= 10
        ? value.toFixed(1)
        : value.toFixed(2);

const text = (x: number, y: number, content: string, anchor = 'start'): string =>
  `<text x="${at(x)}" y="${at(y)}" text-anchor="${anchor}">${escaped(content)}</text>`;

const svg = (height: number, parts: readonly string[]): string =>
  `<svg viewBox="0 0 ${WIDTH} ${at(height)}" role="img">${parts.join('')}</svg>`;

function legend(names: readonly string[], y: number): string[] {
  let x = 0;
  return names.map((name, place) => {
    const item = `<rect x="${at(x)}" y="${at(y)}" width="10" height="10" fill="${colour(place)}"/>${text(x + 14, y + 9, name)}`;
    x += 30 + name.length * 7;
    return item;
  });
}

export interface Bar {
  readonly label: string;
  /** By the names of the legend. */
  readonly parts: Readonly<Record<string, number>>;
}

const ROW = 22;
const LABEL_WIDTH = 190;
const VALUE_WIDTH = 90;

/** A bar for each row, of parts beside each other; the sum stands behind it. */
export function bars(rows: readonly Bar[], unit: string): string {
  const names = [...new Set(rows.flatMap(({ parts }) => Object.keys(parts)))];
  const sums = rows.map(({ parts }) => Object.values(parts).reduce((sum, value) => sum + value, 0));
  const scale = (WIDTH - LABEL_WIDTH - VALUE_WIDTH) / Math.max(...sums, Number.MIN_VALUE);
  const top = names.length > 1 ? 20 : 0;
  const drawn = rows.map(({ label, parts }, row) => {
    const y = top + row * ROW;
    let x = LABEL_WIDTH;
    const rects = names.map((name, place) => {
      const width = (parts[name] ?? 0) * scale;
      const rect = `<rect x="${at(x)}" y="${at(y + 2)}" width="${at(width)}" height="${ROW - 5}" fill="${colour(place)}"><title>${escaped(`${name}: ${short(parts[name] ?? 0)} ${unit}`)}</title></rect>`;
      x += width;
      return rect;
    });
    return [
      text(LABEL_WIDTH - 6, y + 15, label, 'end'),
      ...rects,
      text(x + 5, y + 15, `${short(sums[row]!)} ${unit}`),
    ].join('');
  });
  return svg(top + rows.length * ROW, [...(names.length > 1 ? legend(names, 2) : []), ...drawn]);
}

export interface Line {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

const PLOT = { left: 70, right: 20, top: 26, bottom: 30, height: 200 };

/**
 * Lines over a common x.
 * @param isLog the y axis is logarithmic; else it begins at 0.
 * @param mark what stands at a place of the x axis
 */
export function lines(
  series: readonly Line[],
  xName: string,
  yName: string,
  isLog = false,
  mark = (x: number): string => short(x).replace(/\.0+$/, ''),
): string {
  const points = series.flatMap((line) => line.points);
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  const [xMin, xMax] = [Math.min(...xs), Math.max(...xs)];
  const yMax = Math.max(...ys, Number.MIN_VALUE);
  const lowest = Math.max(Math.min(...ys), yMax / 1e6);
  const yMin = isLog ? lowest : 0;
  const part = (y: number): number =>
    isLog ? Math.log(Math.max(y, yMin) / yMin) / Math.log(yMax / yMin || 1) || 0 : y / yMax;
  const width = WIDTH - PLOT.left - PLOT.right;
  const placeX = (x: number): number => PLOT.left + ((x - xMin) / (xMax - xMin || 1)) * width;
  const placeY = (y: number): number => PLOT.top + (1 - part(y)) * PLOT.height;
  const ticks = isLog
    ? [0, 1, 2, 3, 4].map((step) => yMin * (yMax / yMin) ** (step / 4))
    : [0, 0.25, 0.5, 0.75, 1].map((share) => share * yMax);
  const grid = ticks.map(
    (y) =>
      `<line x1="${PLOT.left}" x2="${WIDTH - PLOT.right}" y1="${at(placeY(y))}" y2="${at(placeY(y))}" class="grid"/>` +
      text(PLOT.left - 6, placeY(y) + 4, short(y), 'end'),
  );
  const bottom = PLOT.top + PLOT.height;
  const seen = [...new Set(xs)].sort((a, b) => a - b);
  const marks = seen.length <= 12 ? seen : [0, 1, 2, 3, 4].map((step) => xMin + ((xMax - xMin) * step) / 4);
  const axis = marks.map((x) => text(placeX(x), bottom + 16, mark(x), 'middle'));
  const drawn = series.map((line, place) => {
    const path = line.points.map(([x, y]) => `${at(placeX(x))},${at(placeY(y))}`).join(' ');
    const dots =
      line.points.length > 20
        ? ''
        : line.points
            .map(
              ([x, y]) =>
                `<circle cx="${at(placeX(x))}" cy="${at(placeY(y))}" r="3" fill="${colour(place)}"><title>${escaped(`${line.name}, ${mark(x)} ${xName}: ${short(y)} ${yName}`)}</title></circle>`,
            )
            .join('');
    return `<polyline points="${path}" fill="none" stroke="${colour(place)}" stroke-width="1.8"/>${dots}`;
  });
  return svg(bottom + PLOT.bottom, [
    ...legend(
      series.map(({ name }) => name),
      2,
    ),
    text(WIDTH - PLOT.right, 12, yName, 'end'),
    ...grid,
    ...axis,
    text(WIDTH - PLOT.right, bottom + 28, xName, 'end'),
    ...drawn,
  ]);
}
