/**
 * Finds doc comments that only repeat the words of the declaration they stand on. A comment says what name
 * and type don't: a reason, a unit, a limit, an order, a danger, a source.
 */
import { basename } from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { ROOT } from '../support/root.js';
import { type Source, sources } from './sources.js';

/** Words that add nothing to a name and its type. */
const EMPTY = new Set(
  `a all also an and any are as at be been builds by can computes contains creates date does each encodes
  every extracts finds for from get given gives has have here holds how id identifier in into is it its
  list lists makes map may name names number object of on or own parses reads renders returns runs set
  some such text that the their them there these they this those time to value was were what where whether
  which who whose will with writes`.split(/\s+/),
);
/** What comments call the parts of names. */
const CALLED: ReadonlyMap<string, string> = new Map([
  ['at', 'moment'],
  ['config', 'configuration'],
  ['every', 'interval'],
  ['max', 'maximum largest'],
  ['micros', 'micro usd'],
  ['min', 'minimum smallest'],
  ['ms', 'milliseconds'],
  ['params', 'parameters'],
  ['promise', 'resolves'],
  ['tx', 'transaction'],
  ['url', 'address'],
]);

const wordsOf = (text: string): string[] =>
  text
    .replaceAll("'s ", ' ')
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .match(/[a-z]+|\d+/g) ?? [];

/** Cuts plurals and the endings of verbs, so that `opens`, `opened` and `opener` are one word. */
const stem = (word: string): string =>
  word.length <= 3
    ? word
    : word
        .replace(/(?<!s)s$|ies$/, (end) => (end === 'ies' ? 'y' : ''))
        .replace(/(ing|ied|ed|er|or|ion|e|y)$/, '')
        .replace(/([bdgmnprt])\1$/, '$1');

function vocabularyOf(text: string): ReadonlySet<string> {
  const words = wordsOf(text).flatMap((word) => [word, ...(CALLED.get(word)?.split(' ') ?? [])]);
  return new Set(words.map(stem));
}

interface Named {
  readonly name?: ts.Node;
  readonly type?: ts.TypeNode;
  readonly parameters?: readonly ts.ParameterDeclaration[];
  readonly heritageClauses?: readonly ts.HeritageClause[];
}

/** Returns the parts of a declaration that are read with its comment: no body, and only a short value. */
function declared(node: ts.Node): readonly ts.Node[] {
  const target = ts.isVariableStatement(node) ? node.declarationList.declarations[0]! : node;
  const { name, type, parameters = [], heritageClauses = [] } = target as Named;
  const { initializer } = target as { readonly initializer?: ts.Expression };
  const value =
    initializer === undefined
      ? []
      : ts.isFunctionLike(initializer)
        ? declared(initializer)
        : initializer.end - initializer.pos < 60
          ? [initializer]
          : [];
  return [name, type, ...parameters, ...heritageClauses, ...value].filter((part) => part !== undefined);
}

interface Restatement {
  readonly pos: number;
  readonly end: number;
  /** The description and the tags, and whether each only repeats the declaration. */
  readonly parts: readonly { readonly text: string; readonly restates: boolean }[];
}

function restatements({ path, text }: Source): Restatement[] {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest);
  const found: Restatement[] = [];
  const visit = (node: ts.Node, around: string): void => {
    const doc = (node as { readonly jsDoc?: readonly ts.JSDoc[] }).jsDoc?.at(-1);
    // The first comment of a file introduces the file.
    if (doc !== undefined && text.slice(0, doc.pos).trim() !== '') {
      const own = declared(node).map((part) => part.getText(file));
      const parts = partsOf(text.slice(doc.pos, doc.end)).map((part) => ({
        text: part,
        restates: isRestating(part, own, around),
      }));
      if (parts.some(({ restates }) => restates)) found.push({ pos: doc.pos, end: doc.end, parts });
    }
    const { name } = node as Named;
    const inside = name === undefined || ts.isSourceFile(node) ? around : `${around} ${name.getText(file)}`;
    ts.forEachChild(node, (child) => visit(child, inside));
  };
  visit(file, basename(path).replace(/\..*$/, ''));
  return found;
}

/** Returns the description of a doc comment, then its tags. */
const partsOf = (comment: string): string[] =>
  comment
    .replace(/^\/\*\*|\*\/$/g, '')
    .replace(/^[ \t]*\*[ \t]?/gm, '')
    .split(/^(?=\s*@\w)/m)
    .map((part) => part.trim())
    .filter((part) => part !== '');

/** References, and what undefined, null, true and false mean, are never a repetition. */
const MEANING = /\{@link |§|\b(undefined|null|true|false)\b/i;

function isRestating(part: string, [name = '', ...own]: readonly string[], around: string): boolean {
  const [, tag, param = '', ofTag] = /^@(\w+)\s*([\w$]*)(.*)$/s.exec(part) ?? [];
  if (MEANING.test(part) || (tag !== undefined && tag !== 'param')) return false;
  // What another parameter is called says nothing about this one.
  const [parameter] = own.filter((each) => new RegExp(`^${param}\\b`).test(each));
  const known = tag === undefined ? own : [parameter ?? param];
  const vocabulary = vocabularyOf([name, ...known, around].join(' '));
  return wordsOf(ofTag ?? part).every(
    (word) => EMPTY.has(word) || EMPTY.has(`${word}s`) || vocabulary.has(stem(word)),
  );
}

test('no doc comment only repeats its declaration', () => {
  const code = sources(ROOT, ['src', 'workers', 'console', 'tools', 'bench', 'test'], /(?<!\.d|\.v1)\.tsx?$/);
  const found = code.flatMap((source) =>
    restatements(source).map(({ pos, parts }) => {
      const line = source.text.slice(0, pos).split('\n').length;
      return `${source.path}:${line}: ${parts.filter(({ restates }) => restates)[0]!.text}`;
    }),
  );
  expect(found).toEqual([]);
});
