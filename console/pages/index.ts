/** Maps the first part of an address to a page of the console. */
import type { ComponentType } from 'preact';
import type { Place } from '../router.js';
import { ApiVersions } from './apiVersions.js';
import { AuditLog } from './auditLog.js';
import { Rounds } from './blackjack.js';
import { Cells } from './cells.js';
import { Dealing } from './dealing.js';
import { GameDetail, Games } from './games.js';
import { LedgerDays } from './ledgerDays.js';
import { LookUp } from './lookUp.js';
import { Operators } from './operators.js';
import { Overview } from './overview.js';
import { ParSheetDetail, ParSheets } from './parSheets.js';
import { PartnerDetail, Partners } from './partners.js';
import { PlayerStatement, Players } from './players.js';
import { ProgramChecks } from './programChecks.js';
import { ProgressiveDetail, Progressives } from './progressives.js';
import { BlockDetail, PublicLog } from './publicLog.js';
import { Raffles } from './raffles.js';
import { Reports } from './reports.js';
import { Returns } from './returns.js';
import { SettlementDetail, Settlements } from './settlements.js';
import { Webhooks } from './webhooks.js';

export interface Page {
  readonly path: string;
  readonly title: string;
  readonly View: ComponentType<{ readonly place: Place }>;
  readonly isListed: boolean;
}

const listed = (path: string, title: string, View: Page['View']): Page => ({
  path,
  title,
  View,
  isListed: true,
});

export const PAGES: readonly Page[] = [
  listed('overview', 'Overview', Overview),
  listed('partners', 'Partners', Partners),
  listed('games', 'Games', Games),
  listed('raffles', 'Raffles', Raffles),
  listed('rounds', 'Rounds', Rounds),
  listed('progressives', 'Progressives', Progressives),
  listed('par-sheets', 'PAR sheets', ParSheets),
  listed('players', 'Players', Players),
  listed('dealing', 'Dealing', Dealing),
  listed('lookup', 'Look up', LookUp),
  listed('webhooks', 'Webhooks', Webhooks),
  listed('settlements', 'Settlements', Settlements),
  listed('reports', 'Reports', Reports),
  listed('returns', 'Returns', Returns),
  listed('ledger', 'Ledger days', LedgerDays),
  listed('log', 'Public log', PublicLog),
  listed('audit', 'Audit log', AuditLog),
  listed('program', 'Program checks', ProgramChecks),
  listed('versions', 'API versions', ApiVersions),
  listed('cells', 'Cells', Cells),
  listed('operators', 'Operators', Operators),
];

/** Detail pages, which have the id of an object after the path. */
const DETAILS: Readonly<Record<string, (parts: readonly string[]) => Page>> = {
  partners: (parts) => ({ ...detail, title: `Partner ${parts[1]}`, View: PartnerDetail }),
  games: (parts) =>
    parts[2] === 'blocks'
      ? { ...detail, title: `Entry ${parts[3]} of game ${parts[1]}`, View: BlockDetail }
      : { ...detail, title: `Game ${parts[1]}`, View: GameDetail },
  progressives: (parts) => ({ ...detail, title: `Progressive of game ${parts[1]}`, View: ProgressiveDetail }),
  'par-sheets': (parts) => ({ ...detail, title: `PAR sheet ${parts[1]}`, View: ParSheetDetail }),
  players: (parts) => ({ ...detail, title: `Player ${parts[2]}`, View: PlayerStatement }),
  settlements: (parts) => ({ ...detail, title: `Report of ${parts[2]}`, View: SettlementDetail }),
};
const detail = { path: '', isListed: false };

/** Returns the page of an address, or the overview if the address names no page. */
export function pageAt(parts: readonly string[]): Page {
  const [first = ''] = parts;
  const ofOne = parts.length > 1 ? DETAILS[first] : undefined;
  return ofOne?.(parts) ?? PAGES.find(({ path }) => path === first) ?? PAGES[0]!;
}
