/** The last games of a player as the player saw them. */
import { Type } from '#typebox';
import { choice, nullable, timestamp, usd } from '../../domain/schema.js';
import { RoundDealer, RoundHand, RoundInsurance, RoundPhase, RoundStatus } from '../blackjack/schemas.js';
import { CommunityBonus } from '../communal/schemas.js';
import { SandboxMark } from '../spins/sandbox.schemas.js';
import { PlayerBalance, RafflePresentation, SlotPresentation, SpinOutcome } from '../spins/schemas.js';

export const RecallQuery = Type.Object({
  limit: Type.Integer({ minimum: 1, maximum: 50, default: 10, description: 'Games in the answer' }),
});

export const RoundPresentation = Type.Object({
  type: Type.Literal('blackjack'),
  status: RoundStatus,
  phase: RoundPhase,
  hands: Type.Array(RoundHand),
  dealer: RoundDealer,
  insurance: nullable(RoundInsurance),
  actions: Type.Array(Type.String(), { description: 'What the player did, in order' }),
  autoCompleted: Type.Boolean({ description: 'True where its timeout, or the operator, played it out' }),
});

export const SharePresentation = Type.Object({
  type: Type.Literal('communityBonus'),
  tierName: Type.String(),
  tierLevel: Type.Integer(),
  toldBySpinId: nullable(Type.String({ description: 'The spin that told the player; null while none has' })),
});

export const RecalledPresentation = Type.Union(
  [SlotPresentation, RafflePresentation, RoundPresentation, SharePresentation],
  { description: 'What the player saw; `type` tells of what' },
);

export const RecallKind = choice(['spin', 'ticket', 'round', 'share'], 'What the game was');

export const RecalledGame = Type.Object({
  kind: RecallKind,
  gameId: Type.Integer(),
  displayName: Type.String({ description: 'Name of the game that players see' }),
  spinId: Type.Optional(Type.String({ description: 'Of a spin or ticket' })),
  roundId: Type.Optional(Type.String({ description: 'Of a round' })),
  eventId: Type.Optional(Type.String({ description: 'Of a share: the event that it is of' })),
  outcome: Type.Optional(nullable(SpinOutcome)),
  presentation: RecalledPresentation,
  balance: Type.Optional(nullable(PlayerBalance)),
  communityBonus: Type.Optional(nullable(CommunityBonus)),
  sandbox: SandboxMark,
  requestId: Type.Optional(Type.String({ description: 'As sent' })),
  outcomeIndex: Type.Optional(
    nullable(
      Type.Integer({ description: "Place in the game's sequence of outcomes; null where a tester chose it" }),
    ),
  ),
  wagerUsd: usd('What the player staked; 0 of a share'),
  payoutUsd: nullable(usd('What came back; null while a round is open')),
  balanceBeforeUsd: usd('Balance of the player before the game'),
  balanceAfterUsd: usd('Balance of the player after it; of an open round: after its newest step'),
  createdAt: timestamp(),
  endedAt: Type.Optional(nullable(timestamp())),
});

export const Recall = Type.Object({ games: Type.Array(RecalledGame) });
