/** Page of the ledger's days: the size of each day, whether it is archived, and the next command for it. */
import { api, bodyOf, type Schemas } from '../api.js';
import { count, megabytes, time } from '../format.js';
import { useLoad } from '../load.js';
import { Table } from '../table.js';
import { Copied, Facts, Load, Status } from '../ui.js';

type Day = Schemas['LedgerDay'];

/**
 * Returns the next command for a day. Operators run it in a shell, because the archive files are where the
 * command runs.
 */
function nextCommand({ day, state, isDroppable }: Day): string | undefined {
  if (state === 'BOOKED') return `spindle ledger archive --day ${day} --to DIR`;
  return isDroppable ? `spindle ledger drop --day ${day} --from DIR` : undefined;
}

/** Shows the command for the oldest day that needs one, because days are archived and dropped in order. */
function Next({ days }: { readonly days: readonly Day[] }) {
  const command = days.map(nextCommand).find((each) => each !== undefined);
  if (command === undefined) return null;
  return (
    <p>
      Next: <Copied text={command} />
    </p>
  );
}

export function LedgerDays() {
  const loaded = useLoad(() => bodyOf(api.GET('/ledger/days', {})), []);
  return (
    <Load loaded={loaded}>
      {({ days, keepDays }) => (
        <>
          <Facts
            of={[
              [
                'Days in Postgres',
                `${count(days.filter(({ state }) => state !== 'DROPPED').length)} days, ${megabytes(days.reduce((sum, { bytes }) => sum + bytes, 0))}`,
              ],
              [
                'Archived',
                `${count(days.filter(({ archiveBytes }) => archiveBytes !== null).length)} days, ${megabytes(days.reduce((sum, { archiveBytes }) => sum + (archiveBytes ?? 0), 0))}`,
              ],
              ['Can be dropped after', `${count(keepDays)} days`],
            ]}
          />
          <Next days={days} />
          <Table
            caption="Days (UTC), newest first"
            rows={[...days].reverse()}
            keyOf={({ day }) => day}
            empty="The ledger has no entries yet."
            columns={[
              { heading: 'Day', cell: ({ day }) => day },
              { heading: 'State', cell: ({ state }) => <Status of={state} /> },
              {
                heading: 'Entries',
                cell: ({ entries, isEstimate }) => `${isEstimate ? '≈ ' : ''}${count(entries)}`,
                isNumber: true,
              },
              { heading: 'In Postgres', cell: ({ bytes }) => megabytes(bytes), isNumber: true },
              { heading: 'Archive', cell: ({ archiveBytes }) => megabytes(archiveBytes), isNumber: true },
              { heading: 'Archived (UTC)', cell: ({ archivedAt }) => time(archivedAt) },
              { heading: 'Dropped (UTC)', cell: ({ droppedAt }) => time(droppedAt) },
            ]}
          />
        </>
      )}
    </Load>
  );
}
