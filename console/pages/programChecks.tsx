/** Page of program checks, in which processes compare their own files with the list of the build. */
import { api, bodyOf, type Schemas } from '../api.js';
import { count, NONE, time } from '../format.js';
import { useLoad } from '../load.js';
import type { Place } from '../router.js';
import { Table } from '../table.js';
import { Load, pageOf, Status } from '../ui.js';

type Check = Schemas['ProgramCheck'];

/** Returns the result of a check. Without a list of the build, nothing was compared. */
function verdictOf({ manifest, differing }: Check): string {
  if (manifest === null) return 'not compared';
  return differing === 0 ? 'ok' : 'differs';
}

export function ProgramChecks({ place }: { readonly place: Place }) {
  const page = pageOf(place);
  const query = { page, limit: 20 };
  const loaded = useLoad(() => bodyOf(api.GET('/program-checks', { params: { query } })), [query]);
  return (
    <Load loaded={loaded}>
      {({ checks, limit, total }) => (
        <Table
          caption="Checks, newest first"
          rows={checks}
          pages={{ place, limit, total }}
          keyOf={({ checkId }) => checkId}
          empty="No checks yet."
          columns={[
            { heading: 'Time (UTC)', cell: ({ at }) => time(at) },
            { heading: 'Result', cell: (check) => <Status of={verdictOf(check)} /> },
            { heading: 'Process', cell: ({ host, roles }) => `${host}: ${roles}` },
            {
              heading: 'Compared',
              cell: ({ part, isStart }) => (isStart ? `${part}, at the start` : part),
            },
            { heading: 'Version', cell: ({ version }) => version },
            { heading: 'Files', cell: ({ files }) => count(files), isNumber: true },
            { heading: 'Scripts', cell: ({ scripts }) => count(scripts), isNumber: true },
            { heading: 'Differing', cell: (check) => <Differences {...check} />, isNumber: true },
            {
              heading: 'List',
              cell: ({ manifest }) =>
                manifest === null ? NONE : <code title={manifest}>{manifest.slice(0, 8)}</code>,
              value: ({ manifest }) => manifest,
            },
          ]}
        />
      )}
    </Load>
  );
}

function Differences({ differing, differences }: Check) {
  if (differing === 0) return <span>0</span>;
  return (
    <details>
      <summary>{count(differing)}</summary>
      <ul>
        {differences.map(({ path, what }) => (
          <li key={path}>
            {path}: {what}
          </li>
        ))}
      </ul>
    </details>
  );
}
