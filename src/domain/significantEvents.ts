/**
 * Table of all actions in the audit log, with their severities. The response of `GET /reports/events`
 * contains all of them (docs/reports.md, "Significant events").
 */

import { Type } from '#typebox';
import { choice, nullable, timestamp, usd } from './schema.js';

export type Severity = 'INFO' | 'WARNING' | 'CRITICAL';

export const SIGNIFICANT_EVENTS = {
  'api-version.deprecate': 'INFO',
  'auth.failed': 'WARNING',
  'auth.window': 'WARNING',
  'blackjack.create': 'INFO',
  'cell.drain': 'INFO',
  'cell.halt': 'CRITICAL',
  'cell.recover': 'WARNING',
  'cell.refuse': 'CRITICAL',
  'cell.resume': 'WARNING',
  'cells.add': 'INFO',
  'clock.refuse': 'CRITICAL',
  'communal.fund': 'INFO',
  'communal.fund.late': 'WARNING',
  'communal.fund.refused': 'INFO',
  'communal.set': 'INFO',
  'communal.set.refused': 'INFO',
  'copy.give-up': 'WARNING',
  'dealing.switch': 'WARNING',
  'delivery.resend': 'INFO',
  'delivery.resend-failed': 'INFO',
  'game.blocks': 'INFO',
  'game.rotate': 'WARNING',
  'game.update': 'INFO',
  'key.expiry': 'INFO',
  'key.issue': 'INFO',
  'key.revoke': 'INFO',
  'ledger.archive': 'INFO',
  'ledger.drop': 'WARNING',
  'log.begin': 'WARNING',
  'log.halt': 'CRITICAL',
  'log.import': 'WARNING',
  'log.key': 'WARNING',
  'operator.create': 'INFO',
  'operator.refused': 'WARNING',
  'operator.revoke': 'INFO',
  'operator.rotate-key': 'INFO',
  'par-sheet.update': 'INFO',
  'partner.create': 'INFO',
  'partner.move': 'INFO',
  'partner.update': 'INFO',
  'player.adjust': 'INFO',
  'player.adjust.refused': 'INFO',
  'player.status': 'INFO',
  'program.change': 'WARNING',
  'program.check-failed': 'CRITICAL',
  'raffle.close': 'INFO',
  'raffle.create': 'INFO',
  'raffle.refund': 'INFO',
  'raffle.seal': 'INFO',
  'raffle.void': 'WARNING',
  'round.close': 'WARNING',
  'round.close.refused': 'INFO',
  'round.void': 'WARNING',
  'round.void.refused': 'INFO',
  'rtp.review-close': 'INFO',
  'rtp.review-note': 'INFO',
  'rtp.review-open': 'WARNING',
  'service.start': 'INFO',
  'service.stop': 'INFO',
  'session.begin': 'INFO',
  'session.end': 'INFO',
  'settlement.acknowledge': 'INFO',
  'settlement.dispute': 'WARNING',
  'settlement.generate': 'INFO',
  'spins.lost': 'CRITICAL',
  'store.volatile': 'CRITICAL',
  'upgrade.finish': 'INFO',
} as const satisfies Readonly<Record<string, Severity>>;

export type AuditAction = keyof typeof SIGNIFICANT_EVENTS;

/**
 * Type of the event for a win above the partner's threshold. The list of significant events contains this
 * type, although it is no action of the audit log.
 */
export const LARGE_WIN = 'spin.large_win';

/** A type that a newer version wrote counts as INFO. */
export const severityOf = (type: string): Severity =>
  type in SIGNIFICANT_EVENTS ? SIGNIFICANT_EVENTS[type as AuditAction] : 'INFO';

export const typesOf = (severity: Severity): AuditAction[] =>
  (Object.keys(SIGNIFICANT_EVENTS) as AuditAction[]).filter((type) => SIGNIFICANT_EVENTS[type] === severity);

export const EventSeverity = choice(['INFO', 'WARNING', 'CRITICAL']);

export const SignificantEvent = Type.Object({
  eventId: Type.String(),
  at: timestamp(),
  type: Type.String({ description: 'Action of the audit log, or `spin.large_win`' }),
  severity: EventSeverity,
  actor: Type.String({
    description: 'Name of the operator who caused the event, or `worker` if no operator caused it',
  }),
  subject: Type.String({ description: 'Object of the event, such as `game:7`' }),
  partnerId: nullable(
    Type.Integer({
      description: 'Id of the partner to which the subject belongs; null if it belongs to no partner',
    }),
  ),
  gameId: nullable(Type.Integer({ description: 'Game of the large win, or the game that is the subject' })),
  playerId: nullable(
    Type.String({ description: 'Player of the large win, or the player who is the subject' }),
  ),
  spinId: nullable(
    Type.String({ description: 'Spin of the large win, or its blackjack round; null for other events' }),
  ),
  payoutUsd: nullable(usd('Payout of the large win, in USD; null for other events')),
  data: Type.Unknown({
    description: '`before` and `after` of an action, or the data of the webhook event of a large win',
  }),
});
