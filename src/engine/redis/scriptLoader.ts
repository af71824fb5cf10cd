/**
 * Composes a script of lua/ with its includes.
 * - `-- include: name` inserts the file of that name in lua/include, which may have includes of its own. A
 *   file that is included twice is inserted once, where it is first needed.
 * - `-- inline: name` inserts the file at every place where the line stands. The file acts like the body of
 *   a function, without the cost of a call.
 * - A constant of lua/include/layouts is replaced by its value, because a script can have only 200 locals,
 *   and each local costs time in every call.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';

export interface Script {
  readonly source: string;
  /** SHA-1 of the source in lower-case hexadecimal, by which Redis identifies the script. */
  readonly sha: string;
  /**
   * Returns the file and line of a line of the composed source (counted from 1), for example
   * `include/players.lua:12`.
   */
  locate(line: number): string;
}

export const LUA_DIR = join(PROJECT_ROOT, 'lua');

/** Thrown when an included file does not exist, or includes itself. */
export class IncludeError extends Error {}

const INCLUDE = /^ *-- (include|inline): (\S+)$/;
const LAYOUTS = 'include/layouts/';
/** A line of lua/include/layouts: the name of a constant with its value, a number or text. */
const CONSTANT = /^local ([A-Z][A-Z0-9_]*) = ([\d.e]+|'[^']*')$/;

/**
 * @param luaDir folder of the scripts, which contains the folder `include`
 * @param flags flags for the first line of the script, in the syntax of Redis
 * @throws IncludeError if an included file is missing or includes itself
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
          throw new IncludeError(`The includes form a cycle: ${[...path, nested].join(' includes ')}`);
        }
        if (way === 'include' && included.has(nested)) return;
        included.add(nested);
        append(nested, [...path, nested]);
      });
  };
  if (flags !== undefined) add(`#!lua flags=${flags}`, `${name}.lua:0`);
  append(`${name}.lua`, [`${name}.lua`]);
  const source = lines.map((line) => withConstants(line, constants)).join('\n');
  return { ...scriptOf(source), locate: (line) => origins[line - 1] ?? `${name}.lua` };
}

export const scriptOf = (source: string): Script => ({
  source,
  sha: createHash('sha1').update(source).digest('hex'),
  locate: (line) => `line ${line}`,
});

/** Replaces constants by their values. String literals and comments stay unchanged. */
function withConstants(line: string, constants: ReadonlyMap<string, string>): string {
  return line.replace(/'[^']*'|--.*|\b[A-Z][A-Z0-9_]*\b/g, (part) => constants.get(part) ?? part);
}

function textOf(luaDir: string, file: string, path: readonly string[]): string {
  try {
    return readFileSync(join(luaDir, file), 'utf8').replace(/\n$/, '');
  } catch (error) {
    throw new IncludeError(`The last of these files can't be read: ${path.join(' includes ')}`, {
      cause: error,
    });
  }
}

/** Replaces the line numbers of the composed script in an error message by locations in lua/. */
export const withPlaces = (message: string, { locate }: Script): string =>
  message.replace(/(?:@\s*)?user_script: ?(\d+)/g, (_all, line: string) => locate(Number(line)));
