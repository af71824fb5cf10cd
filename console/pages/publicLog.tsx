/**
 * Pages of the public log: its size and witnesses, the log entries of a game, and the proof of one spin or
 * round.
 */
import { ApiFault, api, bodyOf, type Schemas } from '../api.js';
import { save } from '../download.js';
import { count, NONE, time } from '../format.js';
import { useLoad } from '../load.js';
import { faultsOf, readLog } from '../log.js';
import { NamedGame } from '../names.js';
import { linkTo, type Place } from '../router.js';
import { Table } from '../table.js';
import { Copied, Facts, Load, Panel, Status } from '../ui.js';

const EVERY_MS = 10_000;
const PAGE = 20;

export function PublicLog() {
  const loaded = useLoad(readLog, [], EVERY_MS);
  return (
    <Load loaded={loaded}>
      {({ origin, size, root, vkeys, witnesses, quorum }) => (
        <>
          <Facts
            of={[
              ['Origin', origin],
              ['Records', count(size)],
              ['Root', <code key="root">{root}</code>],
              ['Quorum', quorum === 'none' ? "None: blocks don't wait for witnesses" : quorum],
            ]}
          />
          <Panel title="Current keys">
            {vkeys.map((vkey) => (
              <p key={vkey}>
                <Copied text={vkey} />
              </p>
            ))}
          </Panel>
          <Panel title="Witnesses">
            <Table
              caption="Witnesses"
              rows={witnesses}
              keyOf={({ vkey }) => vkey}
              empty="The log has no witnesses (LOG_POLICY is not set)."
              columns={[
                { heading: 'Witness', cell: ({ name }) => name },
                {
                  heading: 'Signed (UTC)',
                  cell: ({ signedAt }) =>
                    signedAt === undefined ? 'not the newest' : time(new Date(signedAt * 1000).toISOString()),
                },
                { heading: 'Key', cell: ({ vkey }) => <code>{vkey}</code> },
              ]}
            />
          </Panel>
          <p>
            <a href="/docs/proofs">How to verify it</a>, and <a href="/verify">the page</a> where anybody can.
          </p>
        </>
      )}
    </Load>
  );
}

/** Lists the public log entries of a game by number. */
export function BlocksPanel({ place, gameId }: { readonly place: Place; readonly gameId: number }) {
  const from = place.query.get('after');
  const after = from === null ? undefined : Number(from);
  const query = { limit: PAGE, ...(after === undefined ? {} : { after }) };
  const loaded = useLoad(
    () => bodyOf(api.GET('/games/{id}/blocks', { params: { path: { id: gameId }, query } })),
    [gameId, after],
  );
  const more = loaded.data?.nextCursor ?? null;
  return (
    <Panel title="Blocks in the public log">
      <Load loaded={loaded}>
        {({ blocks }) => (
          <Table
            caption="Entries by number"
            rows={blocks}
            isPage={after !== undefined || more !== null}
            keyOf={({ number }) => number}
            empty="No entries in the log yet."
            columns={[
              {
                heading: 'Number',
                cell: ({ number }) => <a href={linkTo(['games', gameId, 'blocks', number])}>{number}</a>,
                isNumber: true,
              },
              { heading: 'Type', cell: ({ type, late }) => (late ? `${type}, late` : type) },
              { heading: 'Outcomes', cell: rangeOf },
              { heading: 'Status', cell: ({ status }) => <Status of={status} /> },
              { heading: 'Log index', cell: ({ logIndex }) => logIndex, isNumber: true },
              { heading: 'Logged (UTC)', cell: ({ loggedAt }) => time(loggedAt) },
            ]}
          />
        )}
      </Load>
      {after === undefined && more === null ? null : (
        <nav class="pager" aria-label="Entries">
          {after === undefined ? <span class="off">First</span> : <a href={linkTo(place.parts)}>First</a>}
          {more === null ? (
            <span class="off">Next</span>
          ) : (
            <a href={linkTo(place.parts, { after: String(more) })}>Next</a>
          )}
        </nav>
      )}
    </Panel>
  );
}

/** Formats a range of outcome indices; the last index is inclusive. */
const rangeOf = ({ fromIndex, toIndex }: Schemas['LoggedBlocks']['blocks'][number]): string =>
  fromIndex === null || toIndex === null ? NONE : `${count(fromIndex)} to ${count(toIndex - 1)}`;

const Hash = ({ of }: { readonly of: string }) => <Copied text={of} shown={`${of.slice(0, 12)}…`} />;

/**
 * Page of one log entry of a game: its logged data, and the data that is revealed after all of its outcomes
 * were dealt.
 */
export function BlockDetail({ place }: { readonly place: Place }) {
  const id = Number(place.parts[1]);
  const number = Number(place.parts[3]);
  const loaded = useLoad(
    () => bodyOf(api.GET('/games/{id}/blocks/{number}', { params: { path: { id, number } } })),
    [id, number],
  );
  return (
    <Load loaded={loaded}>
      {(block) => (
        <>
          <Facts
            of={[
              ['Game', <NamedGame key="game" id={id} />],
              ['Type', block.late ? `${block.type}, late` : block.type],
              ['Status', <Status key="status" of={block.status} />],
              ['Outcomes', rangeOf(block)],
              ['Log index', count(block.logIndex)],
              ['Logged (UTC)', time(block.loggedAt)],
              ['Label', <Hash key="label" of={block.label} />],
              ['Salt', <Hash key="salt" of={block.salt} />],
              ...(block.reveal === null
                ? ([['Revealed', 'nothing until all outcomes are dealt']] as const)
                : Object.entries(block.reveal).map(
                    ([name, value]) => [`Revealed ${name}`, <Hash key={name} of={value} />] as const,
                  )),
            ]}
          />
          <Panel title="Entry">
            <p>
              <code class="address">{block.entry}</code>
            </p>
            <button
              type="button"
              onClick={() => save(`entry-${id}-${number}.json`, JSON.stringify(block), 'application/json')}
            >
              Download entry and proof
            </button>
          </Panel>
        </>
      )}
    </Load>
  );
}

type Proof = Schemas['SpinProof'] | Schemas['RoundProof'];
type Proven = { readonly proof: Proof; readonly faults: readonly string[] } | { readonly reason: string };

async function prove(read: () => Promise<Proof>): Promise<Proven> {
  try {
    const proof = await read();
    return { proof, faults: await faultsOf(proof) };
  } catch (error) {
    if (error instanceof ApiFault && error.details[0] !== undefined && error.status === 404)
      return { reason: error.details[0].message };
    throw error;
  }
}

/**
 * The proof of a spin or round. The browser verifies it with the verifier module that the service publishes.
 */
export function ProofPanel({ id, isRound }: { readonly id: string; readonly isRound: boolean }) {
  const loaded = useLoad(
    () =>
      prove(() =>
        isRound
          ? bodyOf(api.GET('/rounds/{roundId}/proof', { params: { path: { roundId: id } } }))
          : bodyOf(api.GET('/spins/{spinId}/proof', { params: { path: { spinId: id } } })),
      ),
    [id],
  );
  return (
    <Panel title="Proof">
      <Load loaded={loaded}>
        {(found) => ('reason' in found ? <p>There is no proof: {found.reason}.</p> : <Verdict {...found} />)}
      </Load>
    </Panel>
  );
}

function Verdict({ proof, faults }: { readonly proof: Proof; readonly faults: readonly string[] }) {
  return (
    <>
      {faults.length === 0 ? (
        <p>
          <Status of="proven" />: the sealed outcome is in the public log at index {count(proof.logIndex)},
          and this result follows from it. By the service's clock it was logged at {time(proof.loggedAt)} UTC.
          The proof alone can't show since when: a checkpoint that somebody saved before the bet, or a
          witness's signature with its own time, would. It was checked with the key that this service
          publishes; for an independent check use a key from another source.
        </p>
      ) : (
        <div class="fault" role="alert">
          <p>It is not proven:</p>
          <ul>
            {faults.map((fault) => (
              <li key={fault}>{fault}</li>
            ))}
          </ul>
        </div>
      )}
      <button type="button" onClick={() => save('proof.json', JSON.stringify(proof), 'application/json')}>
        Download proof
      </button>
    </>
  );
}
