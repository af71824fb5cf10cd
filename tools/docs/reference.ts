/**
 * Renders an OpenAPI document as one HTML page: each operation with its parameters, bodies, examples and
 * errors.
 */
import { Marked } from 'marked';
import { codeBlock } from './highlight.js';
import { escaped } from './pages.js';
import { samplesOf } from './samples.js';
import { labelledTables } from './tables.js';
import { tabsOf } from './tabs.js';

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly 'x-extensible-enum'?: readonly unknown[];
}
interface Media {
  readonly schema: Schema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly summary?: string; readonly value: unknown }>>;
}
interface Body {
  readonly $ref?: string;
  readonly description?: string;
  readonly content?: Readonly<Record<string, Media>>;
}
interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly description?: string;
    readonly schema: Schema;
  }[];
  readonly requestBody?: Body;
  readonly responses: Readonly<Record<string, Body>>;
}
export interface OpenApi {
  readonly info: { readonly title: string; readonly description: string };
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly webhooks?: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, Body>>;
  };
}

const marked = new Marked({ gfm: true });
marked.use({ renderer: { html: ({ text }) => escaped(text) } });
const prose = (text: string): string => marked.parse(text, { async: false });
const line = (text: string): string => marked.parseInline(text, { async: false });
const code = (text: string): string => `<code>${escaped(text)}</code>`;
const nameOf = (reference: string): string => reference.slice(reference.lastIndexOf('/') + 1);
const anchor = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');

const block = (value: unknown): string => codeBlock(JSON.stringify(value, null, 2), 'json');

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  rows.length === 0
    ? ''
    : `<table><thead><tr>${head.map((cell) => `<th>${cell}</th>`).join('')}</tr></thead><tbody>${rows
        .map((row) => `<tr>${row.map((cell) => `<td>${cell}</td>`).join('')}</tr>`)
        .join('')}</tbody></table>`;

/** Describes the type of a value, with links to named schemas. */
function typeOf(schema: Schema): string {
  if (schema.$ref !== undefined) {
    return `<a href="#schema-${nameOf(schema.$ref)}">${nameOf(schema.$ref)}</a>`;
  }
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices !== undefined) return choices.map(typeOf).join(' or ');
  const values =
    schema.enum ?? schema['x-extensible-enum'] ?? (schema.const === undefined ? undefined : [schema.const]);
  if (values !== undefined) return values.map((value) => code(JSON.stringify(value))).join(' ');
  if (schema.items !== undefined) return `array of ${typeOf(schema.items)}`;
  return escaped([schema.type ?? 'any'].flat().join(' or '));
}

interface Field {
  readonly name: string;
  readonly required: boolean;
  readonly schema: Schema;
  readonly description: string | undefined;
}

/** Returns a list of fields below its title, or an empty text if there are none. */
const fieldList = (title: string, fields: readonly Field[]): string =>
  fields.length === 0
    ? ''
    : `<h4>${title}</h4><dl class="fields">${fields
        .map(
          ({ name, required, schema, description = '' }) =>
            `<dt>${code(name)} <span>${typeOf(schema)}${required ? ', required' : ''}</span></dt><dd>${line(description)}</dd>`,
        )
        .join('')}</dl>`;

function examplesOf(media: Media | undefined): string {
  if (media === undefined) return '';
  if (media.example !== undefined) return block(media.example);
  return Object.entries(media.examples ?? {})
    .map(([name, { value }]) => `<p>${escaped(name)}</p>${block(value)}`)
    .join('');
}

/** Example values of path parameters by name. All other text parameters use the example player `alice`. */
const EXAMPLES: Readonly<Record<string, string>> = {
  date: '2026-11-22',
  roundId: '32ba64c0443dd3ef0747a1737bf2fa44',
  version: 'v1',
  spinId: '0000000000000000000000000001',
  deliveryId: 'dlv_0123456789abcdef',
};

class Reference {
  constructor(readonly document: OpenApi) {}

  page(): string {
    const { info, tags, servers, components, webhooks = {} } = this.document;
    const operations = this.#operations();
    const groups = tags.map(({ name, description }) => {
      const own = operations.filter(({ operation }) => operation.tags[0] === name);
      return `<h2 id="${anchor(name)}">${escaped(name)}</h2>${prose(description)}${own
        .map((each) => this.#operation(each))
        .join('')}`;
    });
    const events = Object.values(webhooks).flatMap((methods) => Object.values(methods));
    return `<h1>${escaped(info.title)}</h1>${prose(info.description)}
<p>Base path ${code(servers[0]!.url)}. The document: <a href="${servers[0]!.url}/openapi.json">openapi.json</a>,
which Postman, Bruno and Insomnia import. Every request has the header ${code('X-API-Key')}.</p>
${groups.join('\n')}
${events.length === 0 ? '' : `<h2 id="events">Events</h2>${events.map((event) => this.#event(event)).join('')}`}
<h2 id="schemas">Schemas</h2>
${Object.entries(components.schemas)
  .map(([name, schema]) => `<h3 id="schema-${name}">${name}</h3>${this.#schema(schema)}`)
  .join('\n')}`;
  }

  #operations() {
    return Object.entries(this.document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        method: method.toUpperCase(),
        path,
        operation,
      })),
    );
  }

  #operation({ method, path, operation }: { method: string; path: string; operation: Operation }): string {
    const { operationId, summary, description, responses } = operation;
    const [status, success] = Object.entries(responses).find(([each]) => each.startsWith('2'))!;
    const errors = Object.entries(responses).filter(([each]) => !each.startsWith('2'));
    const got = this.#bodyOf(success).content?.['application/json'];
    return `<section aria-labelledby="${operationId}"${this.#tried({ method, path, operation })}>
<h3 id="${operationId}"><span class="method">${method}</span> ${code(path)}</h3>
<p><strong>${line(summary)}</strong> ${code(operationId)}</p>${prose(description ?? '')}
<div class="request">
<div>${this.#fields(operation)}</div>
<div>${this.#samples({ method, path, operation })}</div>
</div>
<h4>Response ${status}${got === undefined ? '' : `: ${typeOf(got.schema)}`}</h4>${examplesOf(got)}
<details><summary>Errors</summary>${table(
      ['Status', 'Code', 'Meaning'],
      errors.flatMap(([each, body]) => this.#errorRows(each, this.#bodyOf(body))),
    )}</details>
</section>`;
  }

  /** Returns the lists of the fields of a request: in the path, in the query, in headers and in the body. */
  #fields({ parameters = [], requestBody }: Operation): string {
    const places = ['path', 'query', 'header'].map((place) => ({
      title: `${place[0]!.toUpperCase()}${place.slice(1)}`,
      fields: parameters
        .filter((each) => each.in === place)
        .map(({ name, required = false, schema, description = schema.description }) => ({
          name,
          required,
          schema,
          description,
        })),
    }));
    const lists = places.map(({ title, fields }) => fieldList(title, fields));
    const sent = requestBody?.content?.['application/json'];
    if (sent === undefined) return lists.join('') || '<p>The request has no parameters and no body.</p>';
    const schema = this.#schemaOf(sent.schema);
    const members = Object.entries(schema.properties ?? {}).map(([name, member]) => ({
      name,
      required: schema.required?.includes(name) ?? false,
      schema: member,
      description: member.description,
    }));
    return `${lists.join('')}${fieldList(`Body: ${typeOf(sent.schema)}`, members) || `<h4>Body: ${typeOf(sent.schema)}</h4>`}`;
  }

  #schemaOf(schema: Schema): Schema {
    return schema.$ref === undefined ? schema : this.document.components.schemas[nameOf(schema.$ref)]!;
  }

  get #base(): string {
    return this.document.servers[0]!.url;
  }

  /** True if partners call this API. Then the client supports it, and "Try it" works with a partner's key. */
  get #isOfPartners(): boolean {
    return !this.#base.includes('/operator/');
  }

  #exampleOf(operation: Operation): unknown {
    const sent = operation.requestBody?.content?.['application/json'];
    return sent?.example ?? Object.values(sent?.examples ?? {})[0]?.value;
  }

  #samples({ method, path, operation }: { method: string; path: string; operation: Operation }): string {
    const parameters = (operation.parameters ?? [])
      .filter((each) => each.in === 'path')
      .map(({ name, schema }) => ({
        name,
        value: schema.type === 'integer' ? 1 : (EXAMPLES[name] ?? 'alice'),
      }));
    const { operationId } = operation;
    const body = this.#exampleOf(operation);
    const samples = samplesOf(
      { operationId, method, path, base: this.#base, parameters, body },
      this.#isOfPartners,
    );
    return tabsOf(
      samples.map(({ label, language, code: text }) => ({ label, html: codeBlock(text, language) })),
    );
  }

  /** Returns the data from which the page's script builds the "Try it" form. */
  #tried({ method, path, operation }: { method: string; path: string; operation: Operation }): string {
    if (!this.#isOfPartners) return '';
    const parameters = (operation.parameters ?? [])
      .filter((each) => each.in === 'path' || each.in === 'query')
      .map(({ name, in: place, required = false }) => ({ name, in: place, required }));
    const example = this.#exampleOf(operation);
    const body = example === undefined ? undefined : JSON.stringify(example, null, 2);
    return ` data-try="${escaped(JSON.stringify({ method, path: this.#base + path, parameters, body }))}"`;
  }

  #errorRows(status: string, { content }: Body): string[][] {
    return Object.entries(content?.['application/json']?.examples ?? {}).map(([name, { summary = '' }]) => [
      status,
      `<a href="/docs/errors#${name}">${name}</a>`,
      escaped(summary),
    ]);
  }

  #event({ operationId, summary, description = '', requestBody }: Operation): string {
    const sent = requestBody?.content?.['application/json'];
    return `<section aria-labelledby="${operationId}"><h3 id="${operationId}">${escaped(summary)}</h3>${prose(
      description,
    )}${sent === undefined ? '' : `<p>${typeOf(sent.schema)}</p>${examplesOf(sent)}`}</section>`;
  }

  #schema(schema: Schema): string {
    const { description, properties, required = [] } = schema;
    const text = description === undefined ? '' : prose(description);
    if (properties === undefined) return `${text}<p>${typeOf(schema)}</p>`;
    const rows = Object.entries(properties).map(([name, member]) => [
      code(name) + (required.includes(name) ? '' : ' (optional)'),
      typeOf(member),
      line(member.description ?? ''),
    ]);
    return text + table(['Member', 'Type', 'Meaning'], rows);
  }

  #bodyOf(body: Body): Body {
    return body.$ref === undefined ? body : this.document.components.responses[nameOf(body.$ref)]!;
  }
}

export const referenceOf = (document: OpenApi): string => labelledTables(new Reference(document).page());
