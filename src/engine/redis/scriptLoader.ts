/**
 * Composes an operation of lua/ with its includes: each line `-- include: name` stands for the file of that name in lua/include, which may
 * have includes of its own. A file that is included twice is there once, where it is first needed; one that is inlined
 * (`-- inline: name`) stands wherever it is asked for, as a function's body would, without the cost of a call. A constant
 * of lua/include/layouts stands wherever it is named: a script has room for 200 locals, and each costs every call.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';

export interface Script {
  readonly source: string;
  /** Lower-case hexadecimal SHA-1 of the source, by which Redis knows the script. */
  readonly sha: string;
  /** Where a line of the source (counted from 1) is written: `include/players.lua:12`. */
  locate(line: number): string;
}

/** The folder of the operations. */
export const LUA_DIR = join(PROJECT_ROOT, 'lua');

/** An include that does not exist, or that includes itself. */
export class IncludeError extends Error {}

const INCLUDE = /^ *-- (include|inline): (\S+)$/;
const LAYOUTS = 'include/layouts/';
/** A line of lua/include/layouts: a name and the number or text that it stands for. */
const CONSTANT = /^local ([A-Z][A-Z0-9_]*) = ([\d.e]+|'[^']*')$/;

/**
 * @param luaDir the folder of the operations, with the folder `include` in it.
 * @param flags as Redis reads them in the first line of a script.
 * @throws IncludeError where an include is missing or includes itself.
 */
export function loadScript(luaDir: string, name: string, flags?: string): Script {
  const lines: string[] = [];
  const origins: string[] = [];
  const included = new Set<string>();
  const constants = new Map<string, string>();
  const add = (line: string, origin: string): void => {
    lines.push(line);
    origins.push(origin);
  };
  const append = (file: string, path: readonly string[]): void => {
    textOf(luaDir, file, path)
      .split('\n')
      .forEach((line, i) => {
        const [, constant, value] = file.startsWith(LAYOUTS) ? (CONSTANT.exec(line) ?? []) : [];
        if (constant !== undefined) {
          constants.set(constant, value!);
          return;
        }
        const [, way, name] = INCLUDE.exec(line) ?? [];
        if (name === undefined) {
          add(line, `${file}:${i + 1}`);
          return;
        }
        const nested = `include/${name}.lua`;
        if (path.includes(nested)) {
          throw new IncludeError(`${[...path, nested].join(' includes ')}, which is a cycle`);
        }
        if (way === 'include' && included.has(nested)) return;
        included.add(nested);
        append(nested, [...path, nested]);
      });
  };
  if (flags !== undefined) add(`#!lua flags=${flags}`, `${name}.lua:0`);
  append(`${name}.lua`, [`${name}.lua`]);
  const source = lines.map((line) => withConstants(line, constants)).join('\n');
  return {
    source,
    sha: createHash('sha1').update(source).digest('hex'),
    locate: (line) => origins[line - 1] ?? `${name}.lua`,
  };
}

/** Texts and comments stay as they are. */
function withConstants(line: string, constants: ReadonlyMap<string, string>): string {
  return line.replace(/'[^']*'|--.*|\b[A-Z][A-Z0-9_]*\b/g, (part) => constants.get(part) ?? part);
}

function textOf(luaDir: string, file: string, path: readonly string[]): string {
  try {
    return readFileSync(join(luaDir, file), 'utf8').replace(/\n$/, '');
  } catch (error) {
    throw new IncludeError(`${path.join(' includes ')}, which can't be read`, { cause: error });
  }
}

/** An error message of Redis with the place in lua/ in place of the line of the composed script. */
export const withPlaces = (message: string, { locate }: Script): string =>
  message.replace(/(?:@\s*)?user_script: ?(\d+)/g, (_all, line: string) => locate(Number(line)));
