/** Page that shows all details of a spin or blackjack round by its id, or of what a request id led to. */
import { api, bodyOf, type Schemas } from '../api.js';
import { Field, Form } from '../form.js';
import { NONE, time, usd } from '../format.js';
import { useLoad } from '../load.js';
import {
  GameLink,
  PartnerField,
  PartnerLink,
  useGameNames,
  usePartnerNames,
  usePartnerWanted,
} from '../names.js';
import { go, linkTo, type Place } from '../router.js';
import { Facts, Load, Panel } from '../ui.js';
import { RoundView } from './blackjack.js';
import { ProofPanel } from './publicLog.js';

type Found =
  | { readonly spin: Schemas['OperatorSpin'] }
  | { readonly round: Schemas['RoundRecordResponse']; readonly partnerId: number };

/**
 * Finds the spin or round with this id by the search.
 *
 * @throws ApiFault if the service refuses the request or does not respond
 */
async function find(id: string): Promise<Found> {
  const { plays } = await bodyOf(api.GET('/search', { params: { query: { q: id } } }));
  const [play] = plays;
  if (play?.kind === 'round') {
    const round = await bodyOf(api.GET('/rounds/{roundId}', { params: { path: { roundId: id } } }));
    return { round, partnerId: play.partnerId };
  }
  return { spin: await bodyOf(api.GET('/spins/{spinId}', { params: { path: { spinId: id } } })) };
}

export function LookUp({ place }: { readonly place: Place }) {
  const id = place.query.get('id') ?? '';
  const requestId = place.query.get('request') ?? '';
  const { idOf } = usePartnerNames();
  const partnerId = usePartnerWanted(place);
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
        <Field label="Id of a spin or round" name="id" value={id} required />
      </Form>
      <Form
        label="Find a request"
        button="Find the request"
        keepsValues
        act={async ({ partner, requestId: wanted }) => {
          if (idOf(partner!) === undefined) throw new Error('No partner has this slug or id.');
          go(['lookup'], { partner: partner!, request: wanted!.trim() });
          return null;
        }}
      >
        <PartnerField value={place.query.get('partner') ?? ''} />
        <Field
          label="Request id"
          name="requestId"
          value={requestId}
          required
          hint="As the partner sent it, which a complaint contains"
        />
      </Form>
      {id === '' ? null : <Result key={id} id={id} />}
      {requestId === '' || partnerId === undefined ? null : (
        <Request key={`${partnerId} ${requestId}`} partnerId={partnerId} requestId={requestId} />
      )}
    </>
  );
}

function Request({ partnerId, requestId }: { readonly partnerId: number; readonly requestId: string }) {
  const params = { path: { id: partnerId }, query: { requestId } };
  const loaded = useLoad(
    () => bodyOf(api.GET('/partners/{id}/requests', { params })),
    [partnerId, requestId],
  );
  return (
    <Load loaded={loaded}>
      {({ spins, rounds, adjustment, refusedAdjustments }) => (
        <>
          {spins.map((spin) => (
            <Spin key={spin.spin.spinId} {...spin} />
          ))}
          {rounds.map((round) => (
            <RoundView key={round.roundId} round={round} partnerId={partnerId} onChanged={loaded.reload} />
          ))}
          {adjustment === null ? null : <Raw title="Adjustment" value={adjustment} />}
          {refusedAdjustments.map((refused) => (
            <Raw key={refused.refusedAt} title="Refused adjustment" value={refused} />
          ))}
          {spins.length + rounds.length + refusedAdjustments.length === 0 && adjustment === null ? (
            <p class="empty">
              Nothing has this request id. The request never came, was refused, or is older than the service
              keeps request ids: then look at the player's statement by time.
            </p>
          ) : null}
        </>
      )}
    </Load>
  );
}

function Result({ id }: { readonly id: string }) {
  const loaded = useLoad(() => find(id), [id]);
  return (
    <Load loaded={loaded}>
      {(found) =>
        'spin' in found ? (
          <Spin {...found.spin} />
        ) : (
          <>
            <RoundView round={found.round} partnerId={found.partnerId} onChanged={loaded.reload} />
            <ProofPanel id={found.round.roundId} isRound />
            <Raw title="Original response" value={found.round} />
          </>
        )
      }
    </Load>
  );
}

const Raw = ({ title, value }: { readonly title: string; readonly value: unknown }) => (
  <Panel title={title}>
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users scroll it by the arrow keys */}
    <pre tabIndex={0}>{JSON.stringify(value, null, 2)}</pre>
  </Panel>
);

function Spin({ partnerId, spin, entry, block }: Schemas['OperatorSpin']) {
  const gameNameOf = useGameNames(partnerId);
  return (
    <>
      <Facts
        of={[
          ['Partner', <PartnerLink key="partner" id={partnerId} />],
          [
            'Player',
            <a key="player" href={linkTo(['players', partnerId, spin.playerId])}>
              {spin.playerId}
            </a>,
          ],
          [
            'Game',
            <GameLink key="game" id={spin.gameId}>
              {gameNameOf(spin.gameId)}
            </GameLink>,
          ],
          ['Time (UTC)', time(entry.createdAt)],
          ['Wager', usd(entry.wagerUsd)],
          ['Paid', usd(entry.creditUsd)],
          ['Balance after the spin', usd(entry.balanceUsd)],
          ['Request', entry.requestId ?? NONE],
          ...(spin.sandbox === undefined
            ? []
            : ([['Sandbox', 'Forced: a tester chose the outcome']] as const)),
          ['Index in the game', entry.outcomeIndex ?? NONE],
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
      <ProofPanel id={spin.spinId} isRound={false} />
      <Raw title="Original response" value={spin} />
    </>
  );
}
