/**
 * Pages of settlement reports: the reports of all partners by day and status, and one report with its
 * revisions side by side.
 */
import { differences, FIGURES, SETTLED_GAMES, SETTLEMENTS } from '../../src/api/client/views/reports.js';
import type { Column as ViewColumn } from '../../src/api/client/views/view.js';
import { api, bodyOf, type Schemas } from '../api.js';
import { Field, Form, StatusFilter } from '../form.js';
import { FormDialog, Toolbar } from '../formDialog.js';
import { useLoad } from '../load.js';
import {
  GAME_COLUMN,
  PartnerField,
  PartnerLink,
  usePartnerColumn,
  usePartnerNames,
  usePartnerOf,
  useTitle,
} from '../names.js';
import { linkTo, type Place } from '../router.js';
import { useMayChange } from '../session.js';
import { type Column, columnsOf, shown, Table } from '../table.js';
import { Load, Panel, pageOf } from '../ui.js';

type Report = Schemas['SettlementReport'];

const STATUSES = ['', 'PENDING', 'GENERATED', 'ACKNOWLEDGED', 'DISPUTED'];
/** Maximum number of revisions shown side by side. The newest revisions are shown. */
const SHOWN = 3;

export function Settlements({ place }: { readonly place: Place }) {
  const mayChange = useMayChange();
  const page = pageOf(place);
  const partnerColumn = usePartnerColumn();
  const status = place.query.get('status') ?? '';
  const query = { page, limit: 50, ...(status === '' ? {} : { status }) };
  const loaded = useLoad(() => bodyOf(api.GET('/settlements', { params: { query } })), [page, status]);
  return (
    <>
      {mayChange ? <MakeReport onMade={loaded.reload} /> : null}
      <StatusFilter path="settlements" options={STATUSES} status={status} />
      <Load loaded={loaded}>
        {({ reports, limit, total }) => (
          <Table
            caption="Settlement reports, newest day first"
            rows={reports}
            pages={{ place, limit, total }}
            file="settlements"
            keyOf={({ partnerId, reportDate }) => `${partnerId} ${reportDate}`}
            empty="No report matches these filters. Reports are made each night; make one now with Make a report."
            columns={columnsOf(SETTLEMENTS, {
              'Day (UTC)': ({ partnerId, reportDate }) => (
                <a href={linkTo(['settlements', partnerId, reportDate])}>{reportDate}</a>
              ),
              Partner: partnerColumn,
            })}
          />
        )}
      </Load>
    </>
  );
}

const makeReport = (id: number, date: string, reason?: string): Promise<Report> => {
  const query = reason === undefined ? {} : { reason };
  return bodyOf(api.POST('/partners/{id}/settlements/{date}', { params: { path: { id, date }, query } }));
};

function MakeReport({ onMade }: { readonly onMade: () => void }) {
  const partnerOf = usePartnerOf();
  return (
    <Toolbar>
      <FormDialog title="Make a report">
        <Form
          label="Make a report"
          button="Make report"
          act={async ({ partner, date }) => {
            const { revision, reportStatus } = await makeReport(partnerOf(partner!), date!);
            onMade();
            return `Revision ${revision} is ${reportStatus}.`;
          }}
        >
          <PartnerField />
          <Field label="Day (UTC)" name="date" type="date" required />
        </Form>
      </FormDialog>
    </Toolbar>
  );
}

/**
 * Reads the newest revisions of a report, newest first.
 *
 * @throws ApiFault if the service refuses the request or does not respond
 */
async function readRevisions(id: number, date: string): Promise<Report[]> {
  const path = { id, date };
  const read = (query: { revision?: number }): Promise<Report> =>
    // The response body is JSON, because the request did not ask for CSV.
    bodyOf(api.GET('/partners/{id}/settlements/{date}', { params: { path, query } })) as Promise<Report>;
  const newest = await read({});
  const earlier = Math.min(SHOWN, newest.revision) - 1;
  const others = Array.from({ length: earlier }, (_, i) => read({ revision: newest.revision - 1 - i }));
  return [newest, ...(await Promise.all(others))];
}

const LINES: readonly ViewColumn<Report>[] = [
  ...FIGURES,
  { heading: 'Generated', value: (report) => report.generatedAt, kind: 'time' },
  { heading: 'Acknowledged', value: (report) => report.acknowledgedAt, kind: 'time' },
  { heading: 'Disputed', value: (report) => report.disputedAt, kind: 'time' },
  { heading: 'Dispute', value: (report) => report.disputeReason },
  { heading: 'Hash', value: ({ integrityHash }) => `${integrityHash.slice(0, 16)}…` },
];

export function SettlementDetail({ place }: { readonly place: Place }) {
  const id = Number(place.parts[1]);
  const date = place.parts[2] ?? '';
  const { nameOf } = usePartnerNames();
  useTitle(`${nameOf(id)}, ${date}`);
  const loaded = useLoad(() => readRevisions(id, date), [id, date]);
  return (
    <>
      <p>
        Of <PartnerLink id={id} />.
      </p>
      <Load loaded={loaded}>
        {(revisions) => (
          <>
            {revisions[0]!.reportStatus === 'ACKNOWLEDGED' ? null : (
              <Revise id={id} date={date} onMade={loaded.reload} />
            )}
            <Table
              caption="Revisions, newest first"
              rows={columnsOf(LINES)}
              keyOf={({ heading }) => heading}
              empty=""
              columns={[
                { heading: 'Figure', cell: ({ heading }) => heading },
                ...revisions.map((report) => ({
                  heading: `Revision ${report.revision}, ${report.reportStatus}`,
                  cell: ({ cell }: Column<Report>) => cell(report),
                  isNumber: true,
                })),
              ]}
            />
            <Breakdown report={revisions[0]!} />
          </>
        )}
      </Load>
    </>
  );
}

function Revise(props: { readonly id: number; readonly date: string; readonly onMade: () => void }) {
  if (!useMayChange()) return null;
  return (
    <Toolbar>
      <Form
        label="Make a new revision"
        button="Make a new revision"
        confirm={{
          title: `Make a new revision of the report of ${props.date}?`,
          consequence: (
            <>
              The partner gets a report that replaces the previous revision. Both stay on record.
              <Dispute id={props.id} date={props.date} />
            </>
          ),
          button: 'Make the revision',
          asksReason: true,
        }}
        act={async ({ reason }) => {
          const { revision } = await makeReport(props.id, props.date, reason);
          props.onMade();
          return `Revision ${revision} was made.`;
        }}
      />
    </Toolbar>
  );
}

/** Shows an open dispute, and what the next revision would change in the disputed figures. */
function Dispute({ id, date }: { readonly id: number; readonly date: string }) {
  const params = { path: { id, date } };
  const loaded = useLoad(
    () => bodyOf(api.GET('/partners/{id}/settlements/{date}/preview', { params })),
    [id, date],
  );
  return (
    <Load loaded={loaded}>
      {({ report, disputed }) =>
        disputed === null ? null : (
          <>
            <p>
              The partner disputed revision {disputed.revision}: «{disputed.disputeReason}». Your reason is
              the answer on record.
            </p>
            <Table
              caption="Figures that differ"
              rows={differences(disputed, report)}
              keyOf={([{ heading }]) => heading}
              empty="The next revision has the same figures as the disputed one."
              columns={[
                { heading: 'Figure', cell: ([{ heading }]) => heading },
                { heading: 'Disputed', cell: ([{ kind }, before]) => shown(kind, before), isNumber: true },
                { heading: 'Next', cell: ([{ kind }, , after]) => shown(kind, after), isNumber: true },
              ]}
            />
          </>
        )
      }
    </Load>
  );
}

const Breakdown = ({ report }: { readonly report: Report }) => (
  <Panel title="By game">
    <Table
      caption="By game"
      file={`settlement-${report.reportDate}-games`}
      rows={report.gameBreakdown}
      keyOf={({ gameConfigId }) => gameConfigId}
      empty="The partner had no games on that day."
      columns={columnsOf(SETTLED_GAMES, { Game: GAME_COLUMN })}
    />
  </Panel>
);
