/**
 * Building blocks of pages other than tables and forms: lists of facts, panels, states, and messages for
 * missing data and errors.
 */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { ApiFault, type Schemas } from './api.js';
import { count, time } from './format.js';
import type { Loaded } from './load.js';
import { linkTo, type Place } from './router.js';

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

/** Shows loaded data, or the reason why it is missing. */
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

/** Page of an address that names no page. */
export const NotFound = () => (
  <p class="empty">
    This address has no page. <a href={linkTo(['overview'])}>Open the overview</a>, or search with Ctrl K.
  </p>
);

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

/** What the links to the pages of a list need. */
export interface Pages {
  /** Place of the list; its query contains the page number. */
  readonly place: Place;
  readonly limit: number;
  readonly total: number;
}

export function Pager({ place, limit, total }: Pages) {
  const page = pageOf(place);
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

/** Who changed a status, when and why, as facts that follow the status. */
export const statusFacts = (
  change: Schemas['StatusChange'] | null,
  verb: string,
  { subject, action }: { readonly subject: string; readonly action: string },
): (readonly [string, ComponentChildren])[] =>
  change === null
    ? []
    : [
        [`${verb} by`, change.actor],
        [`${verb} (UTC)`, time(change.at)],
        ['Reason', change.reason ?? 'none was given'],
        [
          'Audit log',
          <a key="audit" href={linkTo(['audit'], { subject, action })}>
            Entry {change.auditId}
          </a>,
        ],
      ];

/** The tone of each state. A state that is not listed is neutral. */
const TONES: Readonly<Record<string, string>> = Object.fromEntries(
  (
    [
      ['good', 'ACTIVE active ok delivered ACKNOWLEDGED ready WITHIN proven ON PAID'],
      ['done', 'SETTLED CLOSED finished EXHAUSTED GENERATED RETIRED ARCHIVED'],
      ['live', 'OPEN DEALING SEALED copying switched pending PENDING'],
      ['void', 'VOIDED'],
      ['warn', 'SUSPENDED draining failing REVIEW WARNING DISABLED deprecated SKIPPED_BUDGET expired'],
      ['bad', 'BLOCKED revoked failed DISPUTED inactive halted ALERT CRITICAL OFF differs none sunset'],
    ] as const
  ).flatMap(([tone, states]) => states.split(' ').map((state) => [state, tone])),
);

/** Shows the state of an object in words, with a color that repeats its meaning. */
export const Status = ({ of }: { readonly of: string }) => (
  <span class={`status ${TONES[of] ?? ''}`}>{of}</span>
);

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

/** Shows a secret with a hint that it is shown only once. */
export const Secret = ({ label, value }: { readonly label: string; readonly value: string }) => (
  <p class="secret">
    {label}, shown only once: <Copied text={value} />
  </p>
);

/** @param of null: the key was made before prefixes were stored */
export const KeyPrefix = ({ of }: { readonly of: string | null }) =>
  of === null ? <span class="note">issued before prefixes were stored</span> : <code>{of}…</code>;

/** Section for actions that cannot be undone or that stop players. It is the last section of its page. */
export const DangerZone = ({ children }: { readonly children: ComponentChildren }) => (
  <section class="panel danger-zone">
    <h2>Dangerous</h2>
    {children}
  </section>
);

/**
 * A text with a button that copies it to the clipboard.
 *
 * @param shown text that is shown instead if `text` is long
 */
export function Copied({ text, shown = text }: { readonly text: string; readonly shown?: string }) {
  const [isCopied, setCopied] = useState(false);
  return (
    <span class="copied">
      <code title={text}>{shown}</code>
      <button
        type="button"
        class="copy"
        aria-label={`Copy ${text.slice(0, 40)}`}
        onBlur={() => setCopied(false)}
        onClick={() =>
          void navigator.clipboard.writeText(text).then(
            () => setCopied(true),
            () => setCopied(false),
          )
        }
      >
        {isCopied ? 'Copied' : 'Copy'}
      </button>
    </span>
  );
}
