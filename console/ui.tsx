/** What pages are made of: tables, forms, lists of facts, and what is said where something is missing or wrong. */
import type { ComponentChildren, FunctionComponent } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { ApiFault } from './api.js';
import { count } from './format.js';
import type { Loaded } from './load.js';
import { go, linkTo, type Place } from './router.js';

export interface Column<Row> {
  readonly heading: string;
  readonly cell: (row: Row) => ComponentChildren;
  readonly isNumber?: boolean;
}

interface TableProps<Row> {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string | number;
  /** Said in place of rows. */
  readonly empty: string;
}

export function Table<Row>({ caption, columns, rows, keyOf, empty }: TableProps<Row>) {
  if (rows.length === 0) return <p class="empty">{empty}</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: who has no mouse scrolls a wide table with the arrow keys
    <section class="table" tabIndex={0} aria-label={caption}>
      <table>
        <caption class="hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ heading, isNumber }) => (
              <th key={heading} scope="col" class={isNumber === true ? 'number' : ''}>
                {heading}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ heading, cell, isNumber }) => (
                <td key={heading} class={isNumber === true ? 'number' : ''}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

export function Fault({ error }: { readonly error: unknown }) {
  if (error === undefined) return null;
  const fault = error instanceof ApiFault ? error : new ApiFault(0, '', String(error));
  return (
    <div class="fault" role="alert">
      <p>
        {fault.code === '' ? null : <a href={`/docs/errors#${fault.code}`}>{fault.code}</a>} {fault.message}
      </p>
      {fault.details.length === 0 ? null : (
        <ul>
          {fault.details.map(({ path, message }) => (
            <li key={path + message}>
              {path.replace(/^\//, '')} {message}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** What was loaded, or why it is not there. */
export function Load<T>({
  loaded,
  children,
}: {
  readonly loaded: Loaded<T>;
  readonly children: (data: T) => ComponentChildren;
}) {
  const { data, error } = loaded;
  return (
    <>
      <Fault error={error} />
      {data !== undefined ? children(data) : error === undefined ? <p role="status">Loading…</p> : null}
    </>
  );
}

export function Facts({ of }: { readonly of: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {of.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Goes through the pages of a list. @param place where the list is; its query keeps the page */
export function Pager({
  place,
  page,
  limit,
  total,
}: { readonly place: Place } & Readonly<Record<'page' | 'limit' | 'total', number>>) {
  const pages = Math.max(1, Math.ceil(total / limit));
  const link = (to: number, label: string) =>
    to < 1 || to > pages ? (
      <span class="off">{label}</span>
    ) : (
      <a href={linkTo(place.parts, { ...Object.fromEntries(place.query), page: String(to) })}>{label}</a>
    );
  return (
    <nav class="pager" aria-label="Pages">
      {link(page - 1, 'Previous')}
      <span>
        Page {page} of {count(pages)}, {count(total)} in all
      </span>
      {link(page + 1, 'Next')}
    </nav>
  );
}

export const pageOf = ({ query }: Place): number => Math.max(1, Number(query.get('page') ?? 1) || 1);

interface FieldProps {
  readonly label: string;
  readonly name: string;
  readonly type?: 'text' | 'number' | 'date';
  readonly value?: string | number | undefined;
  readonly required?: boolean;
  readonly hint?: string;
  readonly options?: readonly string[];
  readonly rows?: number;
}

/** Its type is chosen at run time. */
const Input = 'input' as unknown as FunctionComponent<Record<string, unknown>>;

/** An input with its label. */
export function Field({ label, name, type = 'text', value, required, hint, options, rows }: FieldProps) {
  const described = hint === undefined ? {} : { 'aria-describedby': `${name}-hint` };
  const common = { name, required: required === true, ...described };
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: each branch has one control
    <label class="field">
      <span>{label}</span>
      {options !== undefined ? (
        <select {...common} defaultValue={String(value ?? options[0])}>
          {options.map((option) => (
            <option key={option} value={option} selected={option === value}>
              {option === '' ? 'all' : option}
            </option>
          ))}
        </select>
      ) : rows !== undefined ? (
        <textarea {...common} rows={rows} defaultValue={String(value ?? '')} />
      ) : (
        <Input {...common} type={type} defaultValue={String(value ?? '')} autocomplete="off" step="any" />
      )}
      {hint === undefined ? null : <small id={`${name}-hint`}>{hint}</small>}
    </label>
  );
}

interface FormProps {
  readonly label: string;
  readonly button: string;
  /** What is told once it is done. @throws ApiFault */
  readonly act: (values: Record<string, string>, form: HTMLFormElement) => Promise<ComponentChildren>;
  readonly children?: ComponentChildren;
  readonly isInline?: boolean;
  /** Asked before it is done. */
  readonly confirm?: string;
  readonly keepsValues?: boolean;
}

/** A form that tells what became of it. */
export function Form({ label, button, act, children, isInline, confirm, keepsValues }: FormProps) {
  const [state, setState] = useState<{ busy?: boolean; done?: ComponentChildren; error?: unknown }>({});
  const isBusy = useRef(false);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    if (isBusy.current || (confirm !== undefined && !window.confirm(confirm))) return;
    isBusy.current = true;
    setState({ busy: true });
    const entries = [...new FormData(form)].filter(([, value]) => typeof value === 'string');
    try {
      const done = await act(Object.fromEntries(entries) as Record<string, string>, form);
      setState({ done });
      if (keepsValues !== true) form.reset();
    } catch (error) {
      setState({ error });
    } finally {
      isBusy.current = false;
    }
  };
  return (
    <form class={isInline === true ? 'inline' : ''} aria-label={label} onSubmit={submit}>
      {children}
      <button type="submit" disabled={state.busy === true}>
        {button}
      </button>
      <div class="outcome" role="status">
        {state.done}
      </div>
      <Fault error={state.error} />
    </form>
  );
}

/** A state in words, with a colour that repeats it. */
export function Status({ of }: { readonly of: string }) {
  const GOOD = ['ACTIVE', 'active', 'ok', 'delivered', 'ACKNOWLEDGED', 'ready', 'finished'];
  const BAD = [
    'SUSPENDED',
    'revoked',
    'expired',
    'failed',
    'DISPUTED',
    'BLOCKED',
    'failing',
    'inactive',
    'halted',
  ];
  return <span class={`status ${GOOD.includes(of) ? 'good' : BAD.includes(of) ? 'bad' : ''}`}>{of}</span>;
}

export const Panel = ({
  title,
  children,
}: {
  readonly title: string;
  readonly children: ComponentChildren;
}) => (
  <section class="panel">
    <h2>{title}</h2>
    {children}
  </section>
);

/** A secret that is shown this once. */
export const Secret = ({ label, value }: { readonly label: string; readonly value: string }) => (
  <p class="secret">
    {label}, shown this once: <code>{value}</code>
  </p>
);

/** Shows those of a list that have a status. @param path of the list's page */
export const StatusFilter = ({
  path,
  options,
  status,
}: {
  readonly path: string;
  readonly options: readonly string[];
  readonly status: string;
}) => (
  <Form
    label="Filter"
    button="Show"
    isInline
    keepsValues
    act={async ({ status: wanted }) => {
      go([path], { status: wanted! });
      return null;
    }}
  >
    <Field label="Status" name="status" options={options} value={status} />
  </Form>
);
