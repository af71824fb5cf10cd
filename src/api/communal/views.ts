/** Renders communal progressives for answers: amounts as decimal strings, events by opaque ids. */
import { type BonusNotice, bonusRtp, communalStatus, type PotRecord } from '../../domain/communal.js';
import { communalUsdText, rulesView } from '../../domain/communalRules.js';
import { entryTimeMs } from '../../domain/entryId.js';
import type { SpinIds } from '../../domain/spinId.js';
import type { CommunalEvent } from '../../engine/communal/communal.store.js';

/** Kind numbers of encoded ids that are not spin ids (domain/spinId.ts). */
const EVENT = 1;
const FUNDING = 2;

export const eventIdOf = (spinIds: SpinIds, eventId: bigint, partnerId: number): string =>
  spinIds.encodeOther(eventId, partnerId, EVENT);
export const fundingIdOf = (spinIds: SpinIds, fundingId: number, partnerId: number): string =>
  spinIds.encodeOther(BigInt(fundingId), partnerId, FUNDING);

export const potView = (
  { rules, version, budgetMicros }: Pick<PotRecord, 'rules' | 'version' | 'budgetMicros'>,
  wagerMicros: number,
) => ({
  ...rulesView(rules),
  version,
  status: communalStatus(rules, budgetMicros),
  bonusRtp: bonusRtp(rules, wagerMicros),
});

export const communityBonus = (spinIds: SpinIds, partnerId: number, notice: BonusNotice) => ({
  triggered: true,
  tierName: notice.tierName,
  tierLevel: notice.tierLevel,
  totalAmountUsd: communalUsdText(notice.paidMicros),
  yourShareUsd: communalUsdText(notice.shareMicros),
  isTriggerPlayer: notice.isTrigger,
  eventId: eventIdOf(spinIds, notice.eventId, partnerId),
});

export const eventView = (spinIds: SpinIds, partnerId: number, event: CommunalEvent) => ({
  eventId: eventIdOf(spinIds, event.eventId, partnerId),
  tierLevel: event.tierLevel,
  tierName: event.tierName,
  totalAmountUsd: communalUsdText(event.paidMicros),
  winners: event.winners,
  status: event.status,
  createdAt: new Date(entryTimeMs(event.eventId)).toISOString(),
});
