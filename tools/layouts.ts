/**
 * `npm run layouts`: writes lua/include/layouts, the formats, codes and limits that the scripts need, of their declaration
 * (src/domain/layouts.ts, the kinds of ledger entries, what commands come to). Only what some script names is written.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { FORMATS } from '../src/domain/formats.js';
import type { Layout } from '../src/domain/layout.js';
import * as layouts from '../src/domain/layouts.js';
import { ENTRY_KINDS } from '../src/domain/ledgerEntry.js';
import { LUA_DIR } from '../src/engine/redis/scriptLoader.js';
import { DENY, SPIN_STATUS } from '../src/engine/redis/statuses.js';

const HEAD = '-- Made by `npm run layouts` of src/domain/layouts.ts: change it there.\n';
const FOLDER = join('include', 'layouts');
/** What Redis gives a script. */
const LUA_OWN = ['KEYS', 'ARGV'];

type AnyLayout = Layout<Record<string, never>>;
/** Lines of Lua that define names; each is written where a script has one of its names. */
interface Definition {
  readonly names: readonly string[];
  readonly lines: readonly string[];
}

const constantOf = (name: string): string =>
  /[a-z]/.test(name) ? name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase() : name;
const define = (name: string, value: string): Definition => ({
  names: [name],
  lines: [`local ${name} = ${value}`],
});
const byteOf = (code: number): string => `'\\${code}'`;

function ofLayout(name: string, { members, bytes, at }: AnyLayout): Definition[] {
  const each = Object.entries(members) as [string, { lua: string; type: string }][];
  const notation = each.map(([, { lua }]) => lua).join('');
  const told = [`-- ${name}: ${each.map(([member, { type }]) => `${member} ${type}`).join(', ')}`];
  const format: Definition = { names: [`${name}_FORMAT`], lines: [`local ${name}_FORMAT = '<${notation}'`] };
  return [
    { ...format, lines: [...told, ...format.lines] },
    define(`${name}_MEMBERS`, `'${notation}'`),
    define(`${name}_BYTES`, String(bytes)),
    ...each.map(([member]) =>
      define(`${name}_${constantOf(member)}_AT`, String((at as Record<string, number>)[member]! + 1)),
    ),
  ];
}

const ofLayouts = (declared: Readonly<Record<string, unknown>>): Definition[] =>
  Object.entries(declared).flatMap(([name, each]) => ofLayout(name, each as AnyLayout));
const ofNumbers = (numbers: Readonly<Record<string, number>>, prefix = '', suffix = ''): Definition[] =>
  Object.entries(numbers).map(([name, value]) =>
    define(`${prefix}${constantOf(name)}${suffix}`, luaNumber(value)),
  );
/** In digits up to 2^31, else as a power of ten where it is one times a digit: Lua 5.1 reads both exactly. */
const luaNumber = (value: number): string =>
  value > 2 ** 31 ? value.toExponential().replace('+', '') : String(value);
const ofBytes = (codes: Readonly<Record<string, number>>): Definition[] =>
  Object.entries(codes).map(([name, code]) => define(constantOf(name), byteOf(code)));

function groups(): Readonly<Record<string, readonly Definition[]>> {
  const { GAME, PARTNER, CORE, CORE_OF_ID, PLAYER, PLAYER_OF_CORE, PLAYER_STATUS, BOUND } = layouts;
  const { TOTALS, MOMENT, LAST, BOOKED, SEGMENTS, ENTRY_ID, PAYOUT } = layouts;
  const {
    ENTRY_HEAD,
    ENTRY_BODY,
    ENTRY_TEXT,
    FORCED,
    FORCED_REPLY,
    ROUND,
    ROUND_DEAL_REPLY,
    ROUND_ACT_REPLY,
  } = layouts;
  const { BATCH, BATCH_PARTNER, BATCH_GAME, BATCH_SPIN, BATCH_PLAYER, BATCH_REQUEST } = layouts;
  const { REPLY, REPLY_PARTNER, REPLY_TAIL, INTENT_REPLY } = layouts;
  const {
    POT_STATE,
    POT_RULES,
    TIER,
    BONUS_NOTICE,
    WAITING_SHARE,
    SHARE_TEXT,
    STATE_NOTE,
    EVENT_NOTE,
    NOTIFIED_NOTE,
  } = layouts;
  const kinds = Object.fromEntries(Object.values(ENTRY_KINDS).map(({ kind, code }) => [kind, code]));
  return {
    records: [
      ...ofLayouts({
        GAME,
        PARTNER,
        CORE,
        CORE_OF_ID,
        PLAYER,
        PLAYER_OF_CORE,
        PLAYER_STATUS,
        BOUND,
      }),
      ...ofLayouts({ TOTALS, MOMENT, LAST, BOOKED, SEGMENTS, ENTRY_ID, PAYOUT }),
      ...ofNumbers({
        MONEY_MAX: layouts.MONEY_MAX_MICROS,
        NET_MAX: Number(layouts.NET_MAX_MICROS),
        READ_AHEAD: layouts.READ_AHEAD,
        FORMAT_NEWEST: FORMATS.newest,
      }),
      ...ofNumbers(layouts.PLAYER_FLAGS),
    ],
    entries: [
      ...ofLayouts({ ENTRY_HEAD, ENTRY_BODY, ENTRY_TEXT }),
      define('ENTRY_BODY_CORE_END', String(ENTRY_BODY.at.id + CORE.bytes)),
      ...ofNumbers(kinds, '', '_ENTRY'),
    ],
    statuses: [
      ...ofBytes(SPIN_STATUS),
      {
        names: ['DENIALS'],
        lines: [
          `local DENIALS = { [${DENY.refused}] = ${byteOf(SPIN_STATUS.denied)}, [${DENY.mayBeBound}] = ${byteOf(SPIN_STATUS.mayBeBound)}, [${DENY.otherWager}] = ${byteOf(SPIN_STATUS.denied)} }`,
        ],
      },
      ...ofNumbers({ OTHER_WAGER: DENY.otherWager }),
    ],
    batch: [
      ...ofLayouts({ BATCH, BATCH_PARTNER, BATCH_GAME, BATCH_SPIN, BATCH_PLAYER, BATCH_REQUEST }),
      ...ofLayouts({ REPLY, REPLY_PARTNER, REPLY_TAIL }),
      ...ofNumbers(layouts.BATCH_KIND, '', '_KIND'),
      ...ofNumbers(layouts.PARTNER_FLAGS),
    ],
    intents: ofLayouts({ INTENT_REPLY }),
    forced: [...ofLayouts({ FORCED, FORCED_REPLY }), define('FORCED_TAIL', byteOf(layouts.FORCED_TAIL[0]!))],
    rounds: ofLayouts({ ROUND, ROUND_DEAL_REPLY, ROUND_ACT_REPLY }),
    rotation: ofLayouts({ ROTATION: layouts.ROTATION, ROTATE_REPLY: layouts.ROTATE_REPLY }),
    communal: [
      ...ofLayouts({
        POT_STATE,
        POT_RULES,
        TIER,
        BONUS_NOTICE,
        WAITING_SHARE,
        SHARE_TEXT,
        STATE_NOTE,
        EVENT_NOTE,
        NOTIFIED_NOTE,
      }),
      ...ofNumbers(layouts.POT_FLAGS),
      ...ofNumbers(layouts.RULE_FLAGS),
      ...ofNumbers(layouts.NOTE_TYPE, '', '_NOTE'),
      ...ofNumbers(layouts.NOTE_CAUSE, 'BY_'),
      ...ofNumbers(layouts.NOTE_STATUS),
      ...ofNumbers(layouts.COMMUNAL_LIMITS),
    ],
  };
}

/** The constants in the scripts that people write: those that they name, and those that they define themselves. */
function namesInScripts(luaDir: string): { used: Set<string>; own: Set<string> } {
  const lua = [luaDir, join(luaDir, 'include')]
    .flatMap((folder) =>
      readdirSync(folder, { withFileTypes: true })
        .filter((each) => each.isFile() && each.name.endsWith('.lua'))
        .map(({ name }) => readFileSync(join(folder, name), 'utf8')),
    )
    .map((text) =>
      text
        .replace(/--\[\[.*?\]\]/gs, '')
        .replace(/--.*$/gm, '')
        .replace(/'[^'\n]*'/g, "''"),
    )
    .join('\n');
  const own = lua.match(/(?<=^ *local )[A-Z][A-Z0-9_, ]*(?= =)/gm) ?? [];
  return {
    used: new Set(lua.match(/\b[A-Z][A-Z0-9_]*\b/g) ?? []),
    own: new Set(own.flatMap((names) => names.split(', '))),
  };
}

/** The files of lua/include/layouts by name. @throws Error where a script names what nobody defines: Lua would take it for nil. */
export function luaLayouts(luaDir: string): Map<string, string> {
  const { used, own } = namesInScripts(luaDir);
  const all = Object.entries(groups());
  const defined = new Set(all.flatMap(([, definitions]) => definitions.flatMap(({ names }) => names)));
  const unknown = [...used].filter((name) => !defined.has(name) && !own.has(name) && !LUA_OWN.includes(name));
  if (unknown.length > 0) throw new Error(`The scripts name ${unknown.join(', ')}, which nobody defines`);
  return new Map(
    all.map(([group, definitions]) => {
      const lines = definitions
        .filter(({ names }) => names.some((name) => used.has(name)))
        .flatMap(({ lines }) => lines);
      return [`${group}.lua`, `${HEAD}${lines.join('\n')}\n`];
    }),
  );
}

if (import.meta.url === pathToFileURL(process.argv[1]!).href) {
  mkdirSync(join(LUA_DIR, FOLDER), { recursive: true });
  for (const [name, text] of luaLayouts(LUA_DIR)) writeFileSync(join(LUA_DIR, FOLDER, name), text);
}
