/** Reads the fenced code blocks of the documentation, which tests run as printed. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './root.js';

export interface DocBlock {
  /** Line number, starting at 1. */
  readonly line: number;
  /** The language after the opening fence, such as `sql`, or an empty text. */
  readonly language: string;
  readonly code: string;
}

/** @param page path relative to the project's folder, such as `docs/archive.md` */
export function docBlocks(page: string): DocBlock[] {
  const blocks: DocBlock[] = [];
  let open: { line: number; language: string; code: string[] } | undefined;
  for (const [at, text] of readFileSync(join(ROOT, page), 'utf8').split('\n').entries()) {
    const fence = /^\s*```(\S*)/.exec(text);
    if (fence === null) open?.code.push(text);
    else if (open === undefined) open = { line: at + 1, language: fence[1]!, code: [] };
    else {
      blocks.push({ ...open, code: open.code.join('\n') });
      open = undefined;
    }
  }
  if (open !== undefined) throw new Error(`${page}:${open.line}: the block has no end`);
  return blocks;
}

export const docCode = (page: string, language: string): string[] =>
  docBlocks(page)
    .filter((block) => block.language === language)
    .map(({ code }) => code);
