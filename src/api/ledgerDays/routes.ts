/** Handlers that show operators the days of the ledger. */

import { dayOf, shiftDay } from '../../domain/days.js';
import { type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import * as contract from './contract.js';

export const ledgerDayRoutes = ({ store, process }: Pick<Services, 'store' | 'process'>): Route[] => [
  route(contract.listLedgerDays, async () => {
    const today = dayOf(process.now());
    const { ledgerKeepDays: keepDays } = process;
    const newestDroppable = shiftDay(today, -keepDays - 1);
    const days = await store.ledgerDays.list(today);
    return {
      days: days.map((day) => ({
        ...day,
        isDroppable: day.state === 'ARCHIVED' && day.day <= newestDroppable,
      })),
      keepDays,
    };
  }),
];
