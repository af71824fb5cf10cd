/** Schemas and operations of the sandbox, where testers choose outcomes and preview settlement reports. */
import { type Static, Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';
import { id, opaque, timestamp } from '../../domain/schema.js';
import { SettlementPreview } from '../../domain/settlement.js';
import { endpointsOf } from '../contract/endpoint.js';
import { REPORT } from '../settlements/contract.js';
import { SpinOutcome } from '../spins/contract.js';

const { partner } = endpointsOf('Sandbox');

const nextOutcomeMembers = {
  gameId: id('The `gameConfigId` of a slot game'),
  playerId: opaque("The partner's own identifier of the player"),
  combinationIndex: Type.Integer({
    minimum: 0,
    description:
      'Index of the combination in `combinations` of the PAR sheet, from 0 to their number minus 1',
  }),
};

export const NextOutcomeBody = Type.Object(nextOutcomeMembers);

export type NextOutcomeBody = Static<typeof NextOutcomeBody>;

export const NextOutcomeResponse = Type.Object({
  ...NextOutcomeBody.properties,
  outcome: SpinOutcome,
  expiresAt: timestamp(),
});

export const chooseNextOutcome = partner.post('chooseNextOutcome', '/sandbox/next-outcome', {
  summary: "Choose the outcome of a player's next spin of a slot game",
  description: `The player's next accepted spin of the game returns and pays this combination, with the mark \`"sandbox": {"forced": true}\`. The spin changes the balance, and appears in the ledger, the history and the webhooks. It takes no outcome from the queue, and no total, RTP or settlement includes it. A choice expires after an hour, and replaces the previous choice. Production accounts get ${ERRORS.notFound.code}.`,
  sandboxOnly: true,
  body: NextOutcomeBody,
  response: NextOutcomeResponse,
  hasSums: true,
  errors: [ERRORS.notFound, ERRORS.fieldMissing, ERRORS.gameNotRegistered, ERRORS.capReached],
  bodyExample: { gameId: 3, playerId: 'alice', combinationIndex: 12 },
  example: {
    gameId: 3,
    playerId: 'alice',
    combinationIndex: 12,
    outcome: { prizeTier: 6, payoutUsd: 125.5, isBonusTrigger: false },
    expiresAt: '2026-11-22T05:14:01.121Z',
  },
});

export const previewSettlement = partner.get('previewSettlement', '/sandbox/settlement-preview', {
  summary: "Get a preview of today's settlement report",
  description: `Returns the report that the current UTC day would have now, in the form of a settlement report, for tests of the code that reads reports. \`reportStatus\` is \`PREVIEW\` and \`revision\` is 0, which no settlement report has. Nothing is stored: the preview is not listed, can't be acknowledged, and raises no event. The report itself is made after the end of the day. Production accounts get ${ERRORS.notFound.code}.`,
  sandboxOnly: true,
  response: SettlementPreview,
  hasSums: true,
  errors: [ERRORS.notFound],
  example: { ...REPORT, reportDate: '2026-11-22', reportStatus: 'PREVIEW', revision: 0 },
});
