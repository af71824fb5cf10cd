/** Page of the audit log: who changed what, with the state before and after the change. */
import { api, bodyOf, type Schemas } from '../api.js';
import { type AuditRow, auditRows } from '../auditRows.js';
import { Field, Form } from '../form.js';
import { NONE, time } from '../format.js';
import { useLoad } from '../load.js';
import { go, type Place } from '../router.js';
import { Table } from '../table.js';
import { Load, pageOf } from '../ui.js';

const FILTERS = ['actor', 'action', 'subject'] as const;

export function AuditLog({ place }: { readonly place: Place }) {
  const page = pageOf(place);
  const filter = Object.fromEntries(
    FILTERS.map((name) => [name, place.query.get(name) ?? ''] as const).filter(([, value]) => value !== ''),
  );
  const query = { page, limit: 20, ...filter };
  // The response body is JSON, because the request did not ask for CSV.
  const loaded = useLoad(
    () => bodyOf(api.GET('/audit-log', { params: { query } })) as Promise<Schemas['AuditLog']>,
    [query],
  );
  return (
    <>
      <Form
        key={JSON.stringify(filter)}
        label="Filter"
        button="Show"
        keepsValues
        act={async (values) => {
          go(['audit'], values);
          return null;
        }}
      >
        <Field label="Who" name="actor" value={filter.actor} />
        <Field label="Action begins with" name="action" value={filter.action} hint="For example partner." />
        <Field label="Subject begins with" name="subject" value={filter.subject} hint="For example game:7" />
      </Form>
      <Load loaded={loaded}>
        {({ entries, limit, total }) => (
          <Table
            caption="Changes, newest first"
            rows={auditRows(entries)}
            pages={{ place, limit, total }}
            keyOf={({ entry }) => entry.auditId}
            empty="No change matches these filters. Empty the fields above to see all changes."
            columns={[
              { heading: 'Number', cell: ({ entry }) => entry.auditId, isNumber: true },
              { heading: 'Time (UTC)', cell: ({ entry }) => time(entry.at) },
              { heading: 'Who', cell: ({ entry }) => entry.actor },
              { heading: 'Action', cell: (row) => <Action {...row} />, value: ({ entry }) => entry.action },
              {
                heading: 'Subject',
                cell: (row) => <Subjects {...row} />,
                value: ({ subjects }) => subjects.join(', '),
              },
              { heading: 'Reason', cell: ({ entry }) => reasonIn(entry.after) },
              { heading: 'Change', cell: ({ entry }) => <Change {...entry} /> },
            ]}
          />
        )}
      </Load>
    </>
  );
}

const Action = ({ entry, counted }: AuditRow) => (
  <div>
    {entry.action}
    {counted === undefined ? null : <small>{counted}</small>}
  </div>
);

function Subjects({ subjects }: AuditRow) {
  if (subjects.length === 1) return <span class="address">{subjects[0]}</span>;
  return (
    <details>
      <summary>{subjects.length} subjects</summary>
      <ul>
        {subjects.map((subject) => (
          <li key={subject} class="address">
            {subject}
          </li>
        ))}
      </ul>
    </details>
  );
}

/** Returns the reason of a change, if one was given. */
function reasonIn(after: unknown): string {
  const { reason } = (after ?? {}) as { reason?: unknown };
  return typeof reason === 'string' ? reason : NONE;
}

/** Shows the members that differ between the two states. For a new object it shows all members. */
function Change({ before, after }: Schemas['AuditEntry']) {
  const was = (before ?? {}) as Record<string, unknown>;
  const now = (after ?? {}) as Record<string, unknown>;
  const text = (value: unknown): string => JSON.stringify(value) ?? 'nothing';
  const changed = Object.keys(now).filter((name) => name !== 'reason' && text(was[name]) !== text(now[name]));
  if (changed.length === 0) return <span>nothing</span>;
  return (
    <details>
      <summary>{changed.slice(0, 3).join(', ')}</summary>
      <ul>
        {changed.map((name) => (
          <li key={name}>
            {name}: {before === null ? '' : `${text(was[name])} → `}
            {text(now[name])}
          </li>
        ))}
      </ul>
    </details>
  );
}
