/** Page of a player's last games as the player saw them, newest first. */
import { namedPlayer } from '../../clients/typescript/src/playerNames.js';
import { api, bodyOf, type Schemas } from '../api.js';
import { NONE, time, usd } from '../format.js';
import { useLoad } from '../load.js';
import { GameLink } from '../names.js';
import { linkTo } from '../router.js';
import { Table } from '../table.js';
import { Load, Panel } from '../ui.js';
import { Cards } from './blackjack.js';

type Game = Schemas['RecalledGame'];

const LIMIT = 10;

export function RecallPanel({ id, playerId }: { readonly id: number; readonly playerId: string }) {
  const { inPath, inQuery } = namedPlayer(playerId);
  const params = { path: { id, ...inPath }, query: { limit: LIMIT, ...inQuery } };
  const loaded = useLoad(
    () => bodyOf(api.GET('/partners/{id}/players/{playerId}/recall', { params })),
    [id, playerId],
  );
  return (
    <Panel title="As the player saw it">
      <Load loaded={loaded}>
        {({ games }) => (
          <Table
            caption="Last games, newest first"
            rows={games}
            keyOf={({ kind, spinId, roundId, eventId }) => `${kind} ${spinId ?? roundId ?? eventId}`}
            empty="This player has not played yet."
            columns={[
              { heading: 'Time (UTC)', cell: ({ createdAt }) => time(createdAt) },
              {
                heading: 'Game',
                cell: ({ gameId, displayName }) => <GameLink id={gameId}>{displayName}</GameLink>,
              },
              { heading: 'Shown', cell: (game) => <Shown game={game} />, value: shownText },
              { heading: 'Wager', cell: ({ wagerUsd }) => usd(wagerUsd), isNumber: true },
              { heading: 'Paid', cell: ({ payoutUsd }) => usd(payoutUsd), isNumber: true },
              { heading: 'Before', cell: ({ balanceBeforeUsd }) => usd(balanceBeforeUsd), isNumber: true },
              { heading: 'After', cell: ({ balanceAfterUsd }) => usd(balanceAfterUsd), isNumber: true },
              {
                heading: 'Id',
                cell: ({ spinId, roundId }) => {
                  const play = spinId ?? roundId;
                  return play === undefined ? (
                    NONE
                  ) : (
                    <a href={linkTo(['lookup'], { id: play })}>{play.slice(0, 8)}…</a>
                  );
                },
                value: ({ spinId, roundId, eventId }) => spinId ?? roundId ?? eventId,
              },
            ]}
          />
        )}
      </Load>
    </Panel>
  );
}

/** Describes in words what the player saw in a game. */
function shownText({ presentation, sandbox }: Game): string {
  const forced = sandbox === undefined ? '' : ' (chosen by a tester)';
  switch (presentation.type) {
    case 'slot':
      return presentation.comboString.replaceAll('|', ' ') + forced;
    case 'raffle':
      return presentation.prizeName;
    case 'communityBonus':
      return `Share of the bonus ${presentation.tierName}`;
    default:
      return presentation.hands.map(({ cards, total }) => `${cards.join(' ')} (${total})`).join(', ');
  }
}

function Shown({ game }: { readonly game: Game }) {
  const { presentation } = game;
  if (presentation.type !== 'blackjack') return <>{shownText(game)}</>;
  const { hands, dealer, actions, autoCompleted } = presentation;
  return (
    <>
      {hands.map(({ cards }, place) => (
        <Cards key={place} of={cards} whose={`hand ${place + 1}`} />
      ))}
      <Cards of={dealer.cards} whose="the dealer" />
      {actions.join(', ')}
      {autoCompleted ? ' (played out for the player)' : ''}
    </>
  );
}
