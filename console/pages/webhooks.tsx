/**
 * Page of webhook deliveries: failed deliveries with their content and error, and a button to send them
 * again.
 */
import { api, bodyOf, type Schemas } from '../api.js';
import { Field, Form, StatusFilter } from '../form.js';
import { count, NONE, time } from '../format.js';
import { FormDialog, Toolbar } from '../formDialog.js';
import { useLoad } from '../load.js';
import { usePartnerColumn } from '../names.js';
import type { Place } from '../router.js';
import { useMayChange } from '../session.js';
import { Table } from '../table.js';
import { Copied, Load, Panel, pageOf } from '../ui.js';
import { FailingWebhooks } from './failingWebhooks.js';

type Delivery = Schemas['OperatorDelivery'];

const STATUSES = ['failed', 'pending', 'delivered'];
const HOUR_MS = 3_600_000;

/** Ids begin with their time, so deliveries of one minute begin alike, and only their ends differ. */
const endOf = (id: string): string => `…${id.slice(-8)}`;

const Body = ({ id, body, attemptLog }: Delivery) => (
  <details>
    <summary title={id}>{endOf(id)}</summary>
    <p>
      <Copied text={id} />
    </p>
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users scroll it by the arrow keys */}
    <pre tabIndex={0}>{pretty(body)}</pre>
    {attemptLog.length === 0 ? null : (
      <ol class="attempts" aria-label={`Attempts of ${id}`}>
        {attemptLog.map((attempt) => (
          <li key={attempt.at}>
            {time(attempt.at)} UTC, {count(attempt.durationMs)} ms:{' '}
            {attempt.error ?? `answered ${attempt.responseStatus}`}
            {attempt.responseStart === null ? null : <code>{attempt.responseStart}</code>}
          </li>
        ))}
      </ol>
    )}
  </details>
);

function pretty(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}

function Resend({ id, onSent }: { readonly id: string; readonly onSent: () => void }) {
  const params = { path: { id } };
  return (
    <Form
      label={`Send ${id} again`}
      button="Send again"
      isInline
      act={async () => {
        await bodyOf(api.POST('/deliveries/{id}/resend', { params }));
        onSent();
        return 'The delivery will be resent.';
      }}
    />
  );
}

export function Webhooks({ place }: { readonly place: Place }) {
  const mayChange = useMayChange();
  const page = pageOf(place);
  const partnerColumn = usePartnerColumn();
  const status = place.query.get('status') ?? 'failed';
  const loaded = useLoad(
    () => bodyOf(api.GET('/deliveries', { params: { query: { page, limit: 20, status } } })),
    [page, status],
  );
  const overview = useLoad(() => bodyOf(api.GET('/overview', {})), []);
  return (
    <>
      {mayChange ? <ResendAll onSent={loaded.reload} /> : null}
      <Load loaded={overview}>
        {({ failingWebhooks }) => (
          <Panel title="Failing webhooks">
            <FailingWebhooks of={failingWebhooks} />
          </Panel>
        )}
      </Load>
      <h2 class="panel">Deliveries</h2>
      <StatusFilter path="webhooks" options={STATUSES} status={status} />
      <Load loaded={loaded}>
        {({ deliveries, limit, total }) => (
          <Table
            caption="Deliveries, newest attempts first"
            rows={deliveries}
            pages={{ place, limit, total }}
            keyOf={({ id }) => id}
            empty={`No deliveries with the status ${status}.`}
            columns={[
              { heading: 'Delivery', cell: (row) => <Body {...row} /> },
              { heading: 'Event', cell: ({ event }) => event },
              partnerColumn,
              {
                heading: 'Why',
                cell: (row) => (
                  <div>
                    {row.lastError ?? (row.responseStatus === null ? NONE : `answered ${row.responseStatus}`)}
                    <small>
                      {row.url}, {row.attempts} of {row.maxAttempts} attempts
                    </small>
                  </div>
                ),
              },
              { heading: 'Last (UTC)', cell: ({ lastAttemptAt }) => time(lastAttemptAt) },
            ]}
            actions={mayChange && (({ id }) => <Resend id={id} onSent={loaded.reload} />)}
          />
        )}
      </Load>
    </>
  );
}

const ResendAll = ({ onSent }: { readonly onSent: () => void }) => (
  <Toolbar>
    <FormDialog title="Resend failed deliveries">
      <Form
        label="Resend all"
        button="Resend all"
        confirm={({ hours }) => [
          {
            title: 'Resend all failed deliveries?',
            consequence: `All partners' deliveries that failed in the last ${hours} hours are resent.`,
            button: 'Resend all',
          },
        ]}
        act={async ({ hours }) => {
          const since = new Date(Date.now() - Number(hours) * HOUR_MS).toISOString();
          const { resent } = await bodyOf(api.POST('/webhooks/resend', { body: { since } }));
          onSent();
          return `${resent} will be resent.`;
        }}
      >
        <Field label="Failed within the last hours" name="hours" type="number" value={24} required />
      </Form>
    </FormDialog>
  </Toolbar>
);
