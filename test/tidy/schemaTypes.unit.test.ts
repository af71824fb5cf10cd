import ts from 'typescript';
import { expect, test } from 'vitest';
import type { TObject } from '#typebox';
import { NAMED_SCHEMAS } from '../../src/api/contract/schemaReferences.js';
import * as par from '../../src/domain/par.js';
import { ROOT } from '../support/root.js';
import { type Source, sources } from './sources.js';

/**
 * The kind of each member by name, with `?` after the name of an optional member. Undefined if the kind can't
 * be determined.
 */
type Members = ReadonlyMap<string, string | undefined>;

interface Json {
  readonly type?: string;
  readonly const?: unknown;
  readonly anyOf?: readonly Json[];
}

/** Returns the common kind of several values, or undefined if they have different kinds. */
function common(kinds: readonly (string | undefined)[]): string | undefined {
  const known = new Set(kinds.filter((kind) => kind !== 'null'));
  return known.size === 1 ? [...known][0] : undefined;
}

function kindOfSchema({ type, const: value, anyOf }: Json): string | undefined {
  if (anyOf !== undefined) return common(anyOf.map(kindOfSchema));
  if (value !== undefined) return typeof value;
  return type === 'integer' ? 'number' : type;
}

function kindOfType(type: ts.TypeNode): string | undefined {
  if (ts.isUnionTypeNode(type)) return common(type.types.map(kindOfType));
  if (ts.isTypeOperatorNode(type)) return kindOfType(type.type);
  if (ts.isArrayTypeNode(type) || ts.isTupleTypeNode(type)) return 'array';
  if (ts.isTypeLiteralNode(type)) return 'object';
  if (ts.isLiteralTypeNode(type)) return ts.isStringLiteral(type.literal) ? 'string' : type.getText();
  const text = type.getText();
  return ['string', 'number', 'boolean', 'bigint', 'Date', 'Buffer'].includes(text) ? text : undefined;
}

/** Share of a schema's members. A type that has at least this share of them repeats the schema. */
const SHARE_MIN = 0.75;

const schemas = (NAMED_SCHEMAS as unknown as readonly (readonly [string, TObject])[])
  // A draft of a PAR sheet (parDraft.ts) intentionally repeats the members of a sheet that have the right
  // type.
  .filter(([name, { type }]) => type === 'object' && !(name in par))
  .map(([name, { properties, required }]) => ({
    name,
    members: new Map(
      Object.entries(properties).map(([key, of]) => [
        (required as readonly string[] | undefined)?.includes(key) ? key : `${key}?`,
        kindOfSchema(of as Json),
      ]),
    ),
  }));

/** Returns the types that a file writes out with three members or more. */
function writtenTypes({ path, text }: Source): { name: string; members: Members }[] {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const found: { name: string; members: Members }[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isInterfaceDeclaration(node) || ts.isTypeLiteralNode(node)) {
      const properties = node.members.filter(ts.isPropertySignature);
      const { line } = file.getLineAndCharacterOfPosition(node.getStart());
      if (properties.length >= 3 && properties.length === node.members.length)
        found.push({
          name: `${path}:${line + 1}`,
          members: new Map(
            properties.map(({ name, questionToken, type }) => [
              name.getText() + (questionToken === undefined ? '' : '?'),
              type && kindOfType(type),
            ]),
          ),
        });
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

const isSameKind = (one: string | undefined, other: string | undefined): boolean =>
  one === undefined || other === undefined || one === other;

/**
 * Returns the types of a source that repeat all or most members of a schema, as far as their kinds are known.
 */
const repeatedSchemas = (source: Source): string[] =>
  writtenTypes(source).flatMap((written) =>
    schemas
      .filter(
        ({ members }) =>
          written.members.size >= SHARE_MIN * members.size &&
          [...written.members].every(([key, kind]) => members.has(key) && isSameKind(kind, members.get(key))),
      )
      .map(({ name }) => `${written.name} repeats ${name}`),
  );

test('no type repeats the members of a schema instead of using Static<typeof X>', () => {
  const written = sources(ROOT, ['src'], /(?<!\.d)\.ts$/);
  expect(written.flatMap(repeatedSchemas)).toEqual([]);
});
