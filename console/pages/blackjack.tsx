/**
 * Pages of blackjack rounds: the list of rounds, and one round with its cards, which can be voided or closed.
 */
import { CLOSE_ROUND, ROUNDS, VOID_ROUND } from '../../src/api/client/views/games.js';
import { api, bodyOf, type Schemas } from '../api.js';
import { ChangeForm, Field, Form } from '../form.js';
import { NONE, time, usd } from '../format.js';
import { useLoad } from '../load.js';
import {
  GameLink,
  PartnerField,
  PartnerLink,
  useGameNames,
  usePartnerColumn,
  usePartnerNames,
  usePartnerOf,
} from '../names.js';
import { go, linkTo, type Place } from '../router.js';
import { useMayChange } from '../session.js';
import { columnsOf, Table } from '../table.js';
import { Copied, DangerZone, Facts, Load, Panel, pageOf, Status } from '../ui.js';
import { NewBlackjack } from './newBlackjack.js';

type Round = Schemas['RoundRecordResponse'];

const STATUSES = ['', 'OPEN', 'SETTLED', 'VOIDED'];
export function Rounds({ place }: { readonly place: Place }) {
  const mayChange = useMayChange();
  const partnerOf = usePartnerOf();
  const { idOf, isLoaded } = usePartnerNames();
  const partner = place.query.get('partner') ?? '';
  const partnerId = partner === '' ? undefined : idOf(partner);
  return (
    <>
      {mayChange ? <NewBlackjack /> : null}
      <Form
        label="Rounds"
        button="Show"
        keepsValues
        act={async ({ partner: wanted, status }) => {
          if (wanted !== '') partnerOf(wanted!);
          go(['rounds'], { partner: wanted!, status: status! });
          return null;
        }}
      >
        <PartnerField value={partner} isOptional />
        <Field label="Status" name="status" options={STATUSES} value={place.query.get('status') ?? ''} />
      </Form>
      {partner === '' || partnerId !== undefined ? (
        <RoundList place={place} partnerId={partnerId} />
      ) : isLoaded ? (
        <p class="empty">There is no partner with the name {partner}.</p>
      ) : (
        <p role="status">Loading…</p>
      )}
    </>
  );
}

/** @param partnerId undefined: rounds of all partners */
function RoundList({ place, partnerId }: { readonly place: Place; readonly partnerId: number | undefined }) {
  const page = pageOf(place);
  const status = place.query.get('status') ?? '';
  const query = {
    page,
    limit: 20,
    ...(partnerId === undefined ? {} : { partnerId }),
    ...(status === '' ? {} : { status }),
  };
  const partnerColumn = usePartnerColumn();
  const loaded = useLoad(() => bodyOf(api.GET('/rounds', { params: { query } })), [query]);
  return (
    <Load loaded={loaded}>
      {({ rounds, limit, total }) => (
        <Table
          caption="Rounds, newest first"
          rows={rounds}
          pages={{ place, limit, total }}
          keyOf={({ roundId }) => roundId}
          empty="No round matches these filters. Empty them to see all rounds; a table is created with New blackjack table."
          columns={columnsOf(ROUNDS, {
            Round: {
              cell: ({ roundId: id }) => <a href={linkTo(['lookup'], { id })}>{id.slice(0, 8)}…</a>,
              value: ({ roundId }) => roundId,
            },
            Partner: partnerColumn,
            Table: {
              cell: ({ gameId, gameName }) => <GameLink id={gameId}>{gameName}</GameLink>,
              isNumber: false,
            },
            Player: ({ partnerId: of, playerId }) => (
              <a href={linkTo(['players', of, playerId])}>{playerId}</a>
            ),
          })}
        />
      )}
    </Load>
  );
}

const SUITS: Readonly<Record<string, readonly [string, string]>> = {
  s: ['♠', 'spades'],
  h: ['♥', 'hearts'],
  d: ['♦', 'diamonds'],
  c: ['♣', 'clubs'],
};

/** @param cards cards as rank and suit, such as `Th` */
export const Cards = ({ of: cards, whose }: { readonly of: readonly string[]; readonly whose: string }) => (
  <ul class="cards" aria-label={`Cards of ${whose}`}>
    {cards.map((card, place) => {
      const rank = card[0] === 'T' ? '10' : card[0];
      const [sign, name] = SUITS[card[1] ?? ''] ?? ['', card[1]];
      return (
        <li key={place} class={card[1] === 'h' || card[1] === 'd' ? 'red' : ''}>
          {rank}
          <span aria-hidden="true">{sign}</span>
          <span class="hidden"> of {name}</span>
        </li>
      );
    })}
  </ul>
);

export function RoundView({
  round,
  partnerId,
  onChanged,
}: {
  readonly round: Round;
  readonly partnerId: number;
  readonly onChanged: () => void;
}) {
  const gameNameOf = useGameNames(partnerId);
  return (
    <>
      <Facts
        of={[
          ['Round', <Copied key="round" text={round.roundId} shown={`${round.roundId.slice(0, 12)}…`} />],
          [
            'Game',
            <GameLink key="game" id={round.gameId}>
              {gameNameOf(round.gameId)}
            </GameLink>,
          ],
          ['Partner', <PartnerLink key="partner" id={partnerId} />],
          [
            'Player',
            <a key="player" href={linkTo(['players', partnerId, round.playerId])}>
              {round.playerId}
            </a>,
          ],
          ['Status', <Status key="status" of={round.status} />],
          ['Dealt (UTC)', time(round.createdAt)],
          ['Staked', usd(round.wageredUsd)],
          ['Paid', usd(round.payoutUsd)],
          ['Actions', round.actions.join(', ') || NONE],
        ]}
      />
      <Panel title={`Dealer, ${round.dealer.total}`}>
        <Cards of={round.dealer.cards} whose="the dealer" />
      </Panel>
      {round.hands.map((hand, place) => (
        <Panel
          key={place}
          title={`Hand ${place + 1}, ${hand.total}, ${hand.status}, staked ${usd(hand.wagerUsd)}`}
        >
          <Cards of={hand.cards} whose={`hand ${place + 1}`} />
        </Panel>
      ))}
      {round.status === 'OPEN' ? <EndRound round={round} onChanged={onChanged} /> : null}
    </>
  );
}

function EndRound({ round, onChanged }: { readonly round: Round; readonly onChanged: () => void }) {
  const { roundId, playerId } = round;
  if (!useMayChange()) return null;
  const of = { name: `the round of ${playerId}`, path: { roundId }, onDone: onChanged };
  return (
    <DangerZone>
      <ChangeForm change={CLOSE_ROUND} {...of} />
      <ChangeForm change={VOID_ROUND} typed={playerId} {...of} />
    </DangerZone>
  );
}
