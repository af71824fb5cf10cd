/** Measures the lengths of files and functions in lines. */
import ts from 'typescript';
import { type Source, sources } from './sources.js';

/** Folders whose TypeScript is measured. */
const MEASURED = ['clients/typescript/src', 'src', 'workers', 'bench', 'test'];

export interface Length {
  /** Path of a file, or `path#function`. */
  readonly name: string;
  readonly lines: number;
}

export interface Lengths {
  /** The files, longest first. */
  readonly files: readonly Length[];
  readonly functions: readonly Length[];
}

const byLength = (a: Length, b: Length): number => b.lines - a.lines;

/** Returns the lengths of all files and functions below `root`, without generated files. */
export function lengths(root: string): Lengths {
  const all = sources(root, MEASURED, /(?<!\.d|\.v1|errorCatalog)\.ts$/);
  return {
    files: all
      .map(({ path, text }) => ({ name: path, lines: text.trimEnd().split('\n').length }))
      .sort(byLength),
    functions: all.flatMap(functionsOf).sort(byLength),
  };
}

function functionsOf({ path, text }: Source): Length[] {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const line = (position: number): number => file.getLineAndCharacterOfPosition(position).line;
  const found: Length[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body !== undefined && !isSuite(node)) {
      const lines = line(node.getEnd()) - line(node.getStart()) + 1;
      found.push({ name: `${path}#${nameOf(node)}`, lines });
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/**
 * A `describe` callback contains tests like a file does, so its length does not indicate how hard it is to
 * read.
 */
function isSuite({ parent }: ts.Node): boolean {
  return ts.isCallExpression(parent) && /^describe\b/.test(parent.expression.getText());
}

function nameOf(node: ts.SignatureDeclaration): string {
  if (ts.isConstructorDeclaration(node)) return `${classOf(node)}.constructor`;
  if (node.name !== undefined) {
    const name = node.name.getText();
    return ts.isClassElement(node) ? `${classOf(node)}.${name}` : name;
  }
  const { parent } = node;
  if (ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent)) return parent.name.getText();
  if (ts.isCallExpression(parent)) {
    const text = parent.arguments.find(ts.isStringLiteralLike)?.text;
    return text ?? `in ${parent.expression.getText().slice(0, 40).split('\n')[0]}`;
  }
  return '(anonymous)';
}

function classOf({ parent }: ts.Node): string {
  return ts.isClassLike(parent) ? (parent.name?.getText() ?? '(class)') : '(object)';
}
