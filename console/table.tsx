/**
 * Tables that can be sorted by any column, filtered by text and saved as CSV. On a narrow screen each row is
 * shown as a card.
 */
import type { ComponentChildren, VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { Column as ViewColumn } from '../src/api/client/views/view.js';
import { csvOf } from './csvText.js';
import { save } from './download.js';
import { count, NONE, percent, time, usd } from './format.js';
import { Pager, type Pages, Status } from './ui.js';

export interface Column<Row> {
  readonly heading: string;
  readonly cell: (row: Row) => ComponentChildren;
  readonly isNumber?: boolean;
  /** Value for sorting, filtering and CSV. Default: the text of the cell. */
  readonly value?: (row: Row) => string | number | null | undefined;
}

/** Shows a value of a view. */
export function shown(kind: ViewColumn<never>['kind'], value: unknown): ComponentChildren {
  if (value === null || value === undefined) return NONE;
  if (kind === 'status') return <Status of={String(value)} />;
  if (kind === 'time') return time(String(value));
  const as = { usd, count, percent }[kind as string];
  return as === undefined ? (value as ComponentChildren) : as(Number(value));
}

/** @param cells by heading: cells with links, or other properties of the column */
export const columnsOf = <Row,>(
  view: readonly ViewColumn<Row>[],
  cells: Readonly<Record<string, Column<Row>['cell'] | Partial<Column<Row>>>> = {},
): Column<Row>[] =>
  view.map(({ heading, value, kind = 'text' }) => {
    const given = cells[heading];
    return {
      heading: kind === 'time' ? `${heading} (UTC)` : heading,
      cell: (row) => shown(kind as ViewColumn<Row>['kind'], value(row)),
      isNumber: ['number', 'count', 'usd', 'percent'].includes(kind),
      ...(typeof given === 'function' ? { cell: given } : given),
    };
  });

/** Returns the columns of a view as facts about one object. */
export const factsOf = <Row,>(view: readonly ViewColumn<Row>[], row: Row) =>
  columnsOf(view).map(({ heading, cell }) => [heading, cell(row)] as const);

interface TableProps<Row> {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string | number;
  /** Text that is shown instead of a table without rows. */
  readonly empty: string;
  /**
   * True if the rows are one page of a longer list. The labels of sorting and filtering then say that they
   * apply to this page only.
   */
  readonly isPage?: boolean;
  /** Adds links to the other pages of the list. */
  readonly pages?: Pages;
  /** Adds a column with the actions for a row. False: the operator may not take them. */
  readonly actions?: ((row: Row) => ComponentChildren) | false;
  /** Name of the CSV file that the rows can be saved as, without `.csv`. */
  readonly file?: string;
}

/** Heading of the column with the actions for a row. This column is not sortable. */
const CHANGE = 'Change';
/** Minimum number of rows for which the filter is shown. Fewer rows can be seen at a glance. */
const FILTERED_FROM = 6;

/** Returns the visible text of a cell. For a component this is its `of` property or its children. */
function textOf(children: ComponentChildren): string {
  if (children === null || children === undefined || typeof children === 'boolean') return '';
  if (typeof children !== 'object') return String(children);
  if (Array.isArray(children)) return children.map(textOf).join('');
  const { of, children: inner } = ((children as VNode).props ?? {}) as {
    of?: string;
    children?: ComponentChildren;
  };
  return typeof of === 'string' ? of : textOf(inner);
}

/**
 * Returns the number in a text such as `$1,250.00`, `94.1 %` or `≈ 12`. Returns undefined if there is none.
 */
function numberIn(text: string): number | undefined {
  const found = /(-?)[^\d-]*([\d,]*\.?\d+)/.exec(text);
  return found === null ? undefined : Number(`${found[1]}${found[2]!.replaceAll(',', '')}`);
}

type Key = string | number | undefined;

function keyIn<Row>({ value, cell, isNumber }: Column<Row>, row: Row): Key {
  const given = value === undefined ? textOf(cell(row)) : (value(row) ?? undefined);
  return isNumber === true && typeof given === 'string' ? numberIn(given) : given;
}

/** Returns the field of a CSV file: a number as a number, and nothing for a value that is missing. */
function fieldOf<Row>(column: Column<Row>, row: Row): string | number {
  const field = keyIn(column, row) ?? '';
  return field === NONE ? '' : field;
}

/** Compares two sort keys. Missing values come last in either sort direction. */
function compare(a: Key, b: Key, isDescending: boolean): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
  const order =
    typeof a === 'number' && typeof b === 'number'
      ? a - b
      : String(a).localeCompare(String(b), 'en', { numeric: true });
  return isDescending ? -order : order;
}

/** Returns the rows that contain the text in one of their cells (case-insensitive). */
function filtered<Row>(rows: readonly Row[], columns: readonly Column<Row>[], text: string): readonly Row[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === '') return rows;
  return rows.filter((row) =>
    columns.some((column) =>
      `${textOf(column.cell(row))} ${column.value?.(row) ?? ''}`.toLowerCase().includes(wanted),
    ),
  );
}

/** Sorts the rows. Equal rows keep their order. */
const sorted = <Row,>(rows: readonly Row[], column: Column<Row>, isDescending: boolean): readonly Row[] =>
  [...rows].sort((a, b) => compare(keyIn(column, a), keyIn(column, b), isDescending));

/** Returns the CSS class of a cell: numbers are aligned to the right, times stay in one line. */
const kindOf = (heading: string, isNumber: boolean | undefined): string =>
  isNumber === true ? 'number' : heading.endsWith('(UTC)') ? 'when' : '';

interface Order {
  readonly heading: string;
  readonly isDescending: boolean;
}

/**
 * Returns the next sort order after a click on a heading. The first click sorts numbers in descending and
 * texts in ascending order, the second click reverses the order, and the third click removes it.
 */
function nextOrder(order: Order | undefined, { heading, isNumber }: Column<never>): Order | undefined {
  const first = isNumber === true;
  if (order?.heading !== heading) return { heading, isDescending: first };
  return order.isDescending === first ? { heading, isDescending: !first } : undefined;
}

function Heading<Row>({
  column,
  order,
  onPress,
}: {
  readonly column: Column<Row>;
  readonly order: Order | undefined;
  readonly onPress: () => void;
}) {
  const { heading, isNumber } = column;
  const isSorted = order?.heading === heading;
  const way = isSorted ? (order.isDescending ? 'descending' : 'ascending') : 'none';
  return (
    <th scope="col" class={isNumber === true ? 'number' : ''} {...(isSorted ? { 'aria-sort': way } : {})}>
      {heading === CHANGE ? (
        heading
      ) : (
        <button type="button" class={`sort ${way}`} onClick={onPress}>
          {heading}
        </button>
      )}
    </th>
  );
}

export function Table<Row>({ pages, ...props }: TableProps<Row>) {
  if (pages === undefined) return <Rows {...props} />;
  return (
    <>
      <Rows {...props} isPage={pages.total > pages.limit} />
      <Pager {...pages} />
    </>
  );
}

function Rows<Row>(props: Omit<TableProps<Row>, 'pages'>) {
  const { caption, rows, keyOf, empty, isPage, file, actions = false } = props;
  const columns = actions === false ? props.columns : [...props.columns, { heading: CHANGE, cell: actions }];
  const [order, setOrder] = useState<Order | undefined>();
  const [text, setText] = useState('');
  if (rows.length === 0) return <p class="empty">{empty}</p>;
  const kept = filtered(rows, columns, text);
  const by = columns.find(({ heading }) => heading === order?.heading);
  const ordered = by === undefined ? kept : sorted(kept, by, order!.isDescending);
  const headings = columns.filter(({ heading }) => heading !== CHANGE);
  const keep = (): void =>
    save(
      `${file}.csv`,
      csvOf(
        headings.map(({ heading }) => heading),
        ordered.map((row) => headings.map((column) => fieldOf(column, row))),
      ),
    );
  return (
    <>
      {rows.length < FILTERED_FROM && file === undefined ? null : (
        <div class="table-tools">
          <input
            type="search"
            placeholder={isPage === true ? 'Filter this page' : 'Filter'}
            aria-label={`${isPage === true ? 'Filter this page of' : 'Filter'} ${caption}`}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
          {text.trim() === '' ? null : (
            <span role="status">
              {ordered.length} of {rows.length}
            </span>
          )}
          {file === undefined ? null : (
            <button type="button" class="quiet" onClick={keep}>
              Download these rows as CSV
            </button>
          )}
        </div>
      )}
      {ordered.length === 0 ? (
        <p class="empty">No row contains this text.</p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users scroll it by the arrow keys
        <section class="table" tabIndex={0} aria-label={caption}>
          <table>
            <caption class="hidden">{caption}</caption>
            <thead>
              <tr>
                {columns.map((column) => (
                  <Heading
                    key={column.heading}
                    column={column}
                    order={order}
                    onPress={() => setOrder(nextOrder(order, column as Column<never>))}
                  />
                ))}
              </tr>
            </thead>
            <tbody>
              {ordered.map((row) => (
                <tr key={keyOf(row)}>
                  {columns.map(({ heading, cell, isNumber }) => (
                    <td key={heading} data-label={heading} class={kindOf(heading, isNumber)}>
                      {cell(row)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </>
  );
}
