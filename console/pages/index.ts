/** Maps the first part of an address to a page of the console. */
import type { ComponentType } from 'preact';
import type { Place } from '../router.js';
import { NotFound } from '../ui.js';
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
}

/** An entry of the navigation. Its pages are tabs; the entry leads to the first one. */
export interface Section {
  readonly title: string;
  readonly pages: readonly [Page, ...Page[]];
}

interface Group {
  /** Heading in the navigation. Undefined: the sections need none. */
  readonly title?: string;
  readonly sections: readonly Section[];
}

const page = (path: string, title: string, View: Page['View']): Page => ({ path, title, View });
const section = (title: string, ...pages: Section['pages']): Section => ({ title, pages });

export const GROUPS: readonly Group[] = [
  {
    sections: [
      section('Overview', page('overview', 'Overview', Overview)),
      section(
        'Partners',
        page('partners', 'Partners', Partners),
        page('webhooks', 'Webhooks', Webhooks),
        page('versions', 'API versions', ApiVersions),
      ),
    ],
  },
  {
    title: 'Play',
    sections: [
      section(
        'Games',
        page('games', 'Games', Games),
        page('raffles', 'Raffles', Raffles),
        page('rounds', 'Rounds', Rounds),
        page('progressives', 'Progressives', Progressives),
        page('par-sheets', 'PAR sheets', ParSheets),
        page('dealing', 'Dealing', Dealing),
      ),
      section('Players', page('players', 'Players', Players), page('lookup', 'Look up', LookUp)),
    ],
  },
  {
    title: 'Money',
    sections: [
      section(
        'Reports',
        page('reports', 'Reports', Reports),
        page('settlements', 'Settlements', Settlements),
        page('ledger', 'Ledger days', LedgerDays),
      ),
    ],
  },
  {
    title: 'Integrity',
    sections: [
      section(
        'Fairness',
        page('returns', 'Returns', Returns),
        page('log', 'Public log', PublicLog),
        page('program', 'Program checks', ProgramChecks),
      ),
      section('Audit log', page('audit', 'Audit log', AuditLog)),
    ],
  },
  {
    title: 'System',
    sections: [section('Service', page('cells', 'Cells', Cells), page('operators', 'Operators', Operators))],
  },
];

const SECTIONS = GROUPS.flatMap(({ sections }) => sections);
const PAGES = SECTIONS.flatMap(({ pages }) => pages);

/** Addresses that people guess from the names of pages and of the API, with the path of the page. */
const OTHER_PATHS: Readonly<Record<string, string>> = { 'audit-log': 'audit', deliveries: 'webhooks' };

/** Returns the path of the page of an address. The empty address is that of the overview. */
export const pathOf = ([first]: readonly string[]): string =>
  first === undefined ? PAGES[0]!.path : (OTHER_PATHS[first] ?? first);

/** Returns the section of the page with this path. Undefined if there is no such page. */
export const sectionOf = (path: string): Section | undefined =>
  SECTIONS.find(({ pages }) => pages.some((each) => each.path === path));

export interface FoundPage {
  readonly path: string;
  /** Title of the page, after the title of its section if the two differ. */
  readonly text: string;
}

/** Returns the pages whose title, or whose section's title, contains the text (case-insensitive). */
export function findPages(text: string): FoundPage[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === '') return [];
  return SECTIONS.flatMap((each) =>
    each.pages.map(({ path, title }) => ({
      path,
      text: title === each.title ? title : `${each.title} › ${title}`,
      title,
    })),
  )
    .filter((found) => found.text.toLowerCase().includes(wanted))
    .sort(
      (a, b) =>
        Number(b.title.toLowerCase().includes(wanted)) - Number(a.title.toLowerCase().includes(wanted)),
    );
}

/** Detail pages, which have the id of an object after the path. */
const DETAILS: Readonly<Record<string, (parts: readonly string[]) => Page>> = {
  partners: (parts) => ({ path: '', title: `Partner ${parts[1]}`, View: PartnerDetail }),
  games: (parts) =>
    parts[2] === 'blocks'
      ? { path: '', title: `Entry ${parts[3]} of game ${parts[1]}`, View: BlockDetail }
      : { path: '', title: `Game ${parts[1]}`, View: GameDetail },
  progressives: (parts) => ({ path: '', title: `Progressive of game ${parts[1]}`, View: ProgressiveDetail }),
  'par-sheets': (parts) => ({ path: '', title: `PAR sheet ${parts[1]}`, View: ParSheetDetail }),
  players: (parts) => ({ path: '', title: `Player ${parts[2]}`, View: PlayerStatement }),
  settlements: (parts) => ({ path: '', title: `Report of ${parts[2]}`, View: SettlementDetail }),
};

/** Returns the page of an address. */
export function pageAt(parts: readonly string[]): Page {
  const path = pathOf(parts);
  const ofOne = parts.length > 1 ? DETAILS[path] : undefined;
  return ofOne?.(parts) ?? PAGES.find((each) => each.path === path) ?? page('', 'Not found', NotFound);
}
