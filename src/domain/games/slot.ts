/**
 * Slots: endless outcomes drawn by a PAR sheet that many games share. A slot game is registered by its partner, is dealt from blocks
 * that are made ahead, and never ends.
 */
import { outcomeStatistics, renderSheet } from '../presentation.js';
import type { KindOfGame } from './kindOfGame.js';

export const SLOT: KindOfGame = {
  gameType: 'slot',
  registeredBy: 'partner',
  outcomeSource: {
    form: 'blocks',
    refusesBlocks: undefined,
    // What was leased and not booked is voided: some of it may have been shown to players.
    resumesAt: (leasedTo) => leasedTo,
  },
  acknowledgement: 'as-configured',
  lifeCycle: {
    statusOf: ({ isSuspended }) => (isSuspended ? 'SUSPENDED' : 'ACTIVE'),
    // A requestId binds as long as Redis or a filter knows it.
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
