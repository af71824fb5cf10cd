/** Turns schemas into those of an OpenAPI document: a schema that a contract exports becomes a named component. */
import type { TSchema } from '#typebox';
import * as apiKey from '../../domain/apiKey.js';
import * as apiVersion from '../../domain/apiVersion.js';
import * as auditEntry from '../../domain/auditEntry.js';
import * as communalRules from '../../domain/communalRules.js';
import * as blackjackRules from '../../domain/games/blackjackRules.js';
import * as prizeTable from '../../domain/games/prizeTable.js';
import * as rafflePool from '../../domain/games/rafflePool.js';
import * as ledgerDay from '../../domain/ledgerDay.js';
import * as operator from '../../domain/operator.js';
import * as par from '../../domain/par.js';
import * as partnerMove from '../../domain/partnerMove.js';
import * as programCheck from '../../domain/programCheck.js';
import * as leaves from '../../domain/publicLog/leaves.js';
import { Page, SandboxMark, VoidBody } from '../../domain/schema.js';
import * as settlement from '../../domain/settlement.js';
import * as significantEvents from '../../domain/significantEvents.js';
import * as webhook from '../../domain/webhook.js';
import * as webhookEvents from '../../domain/webhookEvents.js';
import { GameStatusChanged, EVENTS as SENT_EVENTS } from '../../domain/webhookEvents.js';
import { CONTRACTS } from '../index.js';
import * as errorResponse from './errorResponse.js';

/** By type: what webhooks get, and what only the feed has. */
const EVENTS = Object.entries({
  ...SENT_EVENTS,
  'game.status_changed': GameStatusChanged,
});

/** The domain modules that define schemas. */
const DOMAIN = [
  apiKey,
  leaves,
  apiVersion,
  auditEntry,
  blackjackRules,
  communalRules,
  ledgerDay,
  operator,
  par,
  partnerMove,
  prizeTable,
  programCheck,
  rafflePool,
  settlement,
  significantEvents,
  webhook,
  webhookEvents,
];

const isSchema = (member: readonly [string, unknown]): member is [string, TSchema] =>
  typeof member[1] === 'object' && member[1] !== null && '~kind' in member[1];

/** The schemas that have a name: those that a contract exports, and those of the domain that contracts are made of. */
export const NAMED_SCHEMAS: readonly (readonly [string, TSchema])[] = [
  ...[...DOMAIN, errorResponse, ...Object.values(CONTRACTS)].flatMap((each) =>
    Object.entries<unknown>(each).filter(isSchema),
  ),
  ['Page', Page],
  ['SandboxMark', SandboxMark],
  ['VoidBody', VoidBody],
  ...EVENTS.flatMap(([type, schema]): [string, TSchema][] => [
    [`${pascalCase(type)}Event`, schema],
    [`${pascalCase(type)}Data`, schema.properties.data],
  ]),
];

/** The name of a schema in the documents is the name under which it is exported; an event's is made of its type. */
const NAMES: ReadonlyMap<unknown, string> = new Map(
  NAMED_SCHEMAS.map(([name, schema]) => [identityOf(schema), name]),
);

/** The same for a schema and for the copy of it that is optional: a choice's alternatives, else the schema itself. */
function identityOf(schema: object): object {
  return (schema as { anyOf?: object }).anyOf ?? schema;
}

/** `spin.large_win` is SpinLargeWin. */
function pascalCase(eventType: string): string {
  return eventType
    .split(/[._]/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}

/** The schemas of one document. */
export class SchemaReferences {
  readonly #named = new Map<string, object>();

  /** A schema as the document shows it: a reference where it has a name, else the schema itself. */
  of(schema: TSchema): object {
    const name = NAMES.get(identityOf(schema));
    if (name === undefined) return this.#inline(schema);
    // First the name: a schema that refers to itself ends here.
    if (!this.#named.has(name)) {
      this.#named.set(name, {});
      this.#named.set(name, this.#inline(schema));
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  /** All named schemas that were referred to so far, by name. */
  named(): Record<string, object> {
    return sorted(Object.fromEntries(this.#named));
  }

  #inline(schema: object): object {
    return (
      enumOf(schema) ?? this.#discriminated(schema) ?? (this.#members(nullableOf(schema) ?? schema) as object)
    );
  }

  /** A choice of named objects that a constant distinguishes, as generators read it; undefined where the schema is none. */
  #discriminated(schema: object): object | undefined {
    const { anyOf, ...rest } = schema as { anyOf?: readonly ObjectSchema[] };
    const first = anyOf?.[0]?.properties ?? {};
    const propertyName = Object.keys(first).find((name) =>
      anyOf?.every((choice) => choice.properties?.[name]?.const !== undefined),
    );
    if (anyOf === undefined || propertyName === undefined) return undefined;
    const choices = anyOf.map((choice) => ({
      value: choice.properties![propertyName]!.const as string,
      reference: this.of(choice as TSchema) as { $ref: string },
    }));
    return {
      ...rest,
      oneOf: choices.map(({ reference }) => reference),
      discriminator: {
        propertyName,
        mapping: Object.fromEntries(choices.map(({ value, reference }) => [value, reference.$ref])),
      },
    };
  }

  #members(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((each) => this.#member(each));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [
        name,
        name === 'pattern' && typeof member === 'string' ? portable(member) : this.#member(member),
      ]),
    );
  }

  #member(value: unknown): unknown {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return this.#members(value);
    return this.of(value as TSchema);
  }
}

/**
 * A pattern as the regular expressions of every language read it: control characters as ranges. Lone surrogates, which only
 * some can name, are left to the service to refuse.
 */
const portable = (pattern: string): string =>
  pattern.replaceAll('\\p{Cc}', '\\x00-\\x1f\\x7f-\\x9f').replaceAll('\\p{Cs}', '');

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, { readonly const?: unknown }>>;
}

/** A plain type or null, as OpenAPI 3.1 writes it shortest; undefined where the schema is no such choice. */
function nullableOf(schema: object): object | undefined {
  const { anyOf, ...rest } = schema as { anyOf?: readonly { type?: string; enum?: unknown }[] };
  if (anyOf?.length !== 2 || anyOf[1]!.type !== 'null' || NAMES.has(identityOf(anyOf[0]!))) return undefined;
  const { type, ...members } = anyOf[0]!;
  if (type !== 'string' && type !== 'number' && type !== 'integer') return undefined;
  return { type: [type, 'null'], ...members, ...rest };
}

/** A choice of literals as an `enum`, which client generators read best; undefined where the schema is no such choice. */
function enumOf(schema: object): object | undefined {
  const { anyOf, ...rest } = schema as { anyOf?: readonly { type?: string; const?: unknown }[] };
  if (anyOf === undefined || !anyOf.every((choice) => choice.type === 'string' && 'const' in choice)) {
    return undefined;
  }
  return { type: 'string', enum: anyOf.map((choice) => choice.const), ...rest };
}

/** The same members in the order of their names. */
export function sorted<T>(members: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(members).sort(([a], [b]) => (a < b ? -1 : 1)));
}
