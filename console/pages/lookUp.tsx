/** One spin or blackjack round by its id, with all that is known of it. */
import { api, bodyOf, type Schemas } from '../api.js';
import { NONE, time, usd } from '../format.js';
import { useLoad } from '../load.js';
import { go, linkTo, type Place } from '../router.js';
import { Facts, Field, Form, Load, Panel } from '../ui.js';

type Found = { readonly spin: Schemas['OperatorSpin'] } | { readonly round: unknown };

/** A spin, or where there is none a round. @throws ApiFault */
async function find(id: string): Promise<Found> {
  try {
    return { spin: await bodyOf(api.GET('/spins/{spinId}', { params: { path: { spinId: id } } })) };
  } catch (error) {
    const asked = api.GET('/rounds/{roundId}', { params: { path: { roundId: id } } });
    const round = await bodyOf(asked).catch(() => undefined);
    if (round === undefined) throw error;
    return { round };
  }
}

export function LookUp({ place }: { readonly place: Place }) {
  const id = place.query.get('id') ?? '';
  return (
    <>
      <Form
        label="Look up"
        button="Look up"
        keepsValues
        act={async ({ id: wanted }) => {
          go(['lookup'], { id: wanted!.trim() });
          return null;
        }}
      >
        <Field label="Id of a spin or a round" name="id" value={id} required />
      </Form>
      {id === '' ? null : <Result key={id} id={id} />}
    </>
  );
}

function Result({ id }: { readonly id: string }) {
  const loaded = useLoad(() => find(id), [id]);
  return (
    <Load loaded={loaded}>
      {(found) => ('spin' in found ? <Spin {...found.spin} /> : <Raw title="Round" value={found.round} />)}
    </Load>
  );
}

const Raw = ({ title, value }: { readonly title: string; readonly value: unknown }) => (
  <Panel title={title}>
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: who has no mouse scrolls it with the arrow keys */}
    <pre tabIndex={0}>{JSON.stringify(value, null, 2)}</pre>
  </Panel>
);

const Spin = ({ partnerId, spin, entry, block }: Schemas['OperatorSpin']) => (
  <>
    <Facts
      of={[
        [
          'Partner',
          <a key="partner" href={linkTo(['partners', partnerId])}>
            {partnerId}
          </a>,
        ],
        [
          'Player',
          <a key="player" href={linkTo(['players', partnerId, spin.playerId])}>
            {spin.playerId}
          </a>,
        ],
        [
          'Game',
          <a key="game" href={linkTo(['games', spin.gameId])}>
            {spin.gameId}
          </a>,
        ],
        ['Time (UTC)', time(entry.createdAt)],
        ['Wager', usd(entry.wagerUsd)],
        ['Paid', usd(entry.creditUsd)],
        ['Balance after it', usd(entry.balanceUsd)],
        ['Request', entry.requestId ?? NONE],
        ...(spin.sandbox === undefined ? [] : ([['Sandbox', 'Forced: a tester chose the outcome']] as const)),
        ['Place in the game', entry.outcomeIndex ?? NONE],
        ['Outcome', entry.outcomeCode],
        ['Cell', entry.cell],
        ['Ledger entry', <code key="entry">{entry.entryId}</code>],
        ['Entry before', <code key="before">{entry.previousEntryId}</code>],
        ...(block === null
          ? []
          : ([
              ['Sealed in block', `${block.fromIndex} to ${block.toIndex}, ${time(block.createdAt)}`],
              ['Commitment', <code key="commitment">{block.commitment}</code>],
            ] as const)),
      ]}
    />
    <Raw title="As it was answered" value={spin} />
  </>
);
