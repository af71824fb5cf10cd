/**
 * Slots: endless outcomes drawn by a PAR sheet, which many games may share. A slot game is registered by its
 * partner, dealt from blocks made in advance, and never ends.
 */
import { outcomeStatistics, renderSheet } from '../presentation.js';
import type { KindOfGame } from './kindOfGame.js';

export const SLOT: KindOfGame = {
  gameType: 'slot',
  registeredBy: 'partner',
  outcomeSource: {
    form: 'blocks',
    refusesBlocks: undefined,
    // Leased outcomes that are not committed are voided by a rebuild, because players may have seen some of
    // them.
    resumesAt: (leasedTo) => leasedTo,
  },
  acknowledgement: 'as-configured',
  lifeCycle: {
    statusOf: ({ isSuspended }) => (isSuspended ? 'SUSPENDED' : 'ACTIVE'),
    // A requestId of a slot game binds only while Redis or a filter has it.
    mayBindInLedger: () => false,
  },
  mathematics: {
    sheetIdOf: ({ parSheetId }) => parSheetId ?? undefined,
    render: (_source, sheet) =>
      sheet === undefined
        ? undefined
        : { rendered: renderSheet(sheet), statistics: outcomeStatistics(sheet), poolSize: 0 },
    certifiedRtp: ({ sheetRtp }) => sheetRtp,
  },
  listing: { forPartner: () => ({}), forOperator: () => ({}) },
};
