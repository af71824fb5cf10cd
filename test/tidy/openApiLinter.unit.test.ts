/** Checks that the linter of OpenAPI documents finds each fault in a document that is otherwise valid. */
import { expect, test } from 'vitest';
import { openApiFaults } from '../support/openApiLinter.js';

// biome-ignore lint/suspicious/noExplicitAny: each case breaks the document at a place of its own
type Document = any;

const COMPONENTS = {
  securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'X-Key' } },
  schemas: {
    Thing: {
      type: 'object',
      properties: {
        size: { type: 'integer', examples: [1] },
        colour: { type: 'string', enum: ['red', 'blue'] },
        parts: { type: 'array', items: { type: 'string' } },
      },
    },
  },
};

const sound = (): Document => ({
  openapi: '3.1.0',
  info: {
    title: 'Shop',
    version: '1.0.0',
    description: 'Sells things.',
    license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
  },
  servers: [
    { url: 'https://{region}.shop.test', variables: { region: { default: 'eu', enum: ['eu', 'us'] } } },
  ],
  tags: [{ name: 'things', description: 'What is sold.' }],
  security: [{ key: [] }],
  paths: {
    '/things/{id}': {
      get: {
        operationId: 'getThing',
        tags: ['things'],
        summary: 'A thing',
        description: 'Returns a thing.',
        parameters: [
          {
            name: 'id',
            in: 'path',
            required: true,
            description: 'Which one.',
            schema: { type: 'integer' },
            example: 1,
          },
        ],
        responses: {
          200: {
            description: 'The thing.',
            content: {
              'application/json': {
                schema: { $ref: '#/components/schemas/Thing' },
                examples: { one: { value: { size: 1, colour: 'red', parts: ['a'] } } },
              },
            },
          },
          404: { description: 'There is none.' },
        },
      },
    },
    '/things': {
      post: {
        operationId: 'addThing',
        tags: ['things'],
        summary: 'Add a thing',
        description: 'Adds a thing.',
        responses: { 204: { description: 'It was added.' }, 400: { description: 'It is none.' } },
      },
    },
  },
  webhooks: {
    'thing.sold': {
      post: {
        operationId: 'thingSold',
        tags: ['things'],
        summary: 'A thing was sold',
        description: 'Sent for each sale.',
        responses: { 204: { description: 'Received.' }, 400: { description: 'Refused.' } },
      },
    },
  },
  components: structuredClone(COMPONENTS),
});

const get = (document: Document): Document => document.paths['/things/{id}'].get;
const post = (document: Document): Document => document.paths['/things'].post;
const thing = (document: Document): Document => document.components.schemas.Thing;
function rename(object: Document, from: string, to: string): void {
  object[to] = object[from];
  delete object[from];
}
const callback = { sold: { '{$request.body#/url}': { post: {} as Document } } };

/** Faults by the rules of Spectral's rule set for OpenAPI 3.1, which this linter covers completely. */
const FAULTS: Record<string, (document: Document) => unknown> = {
  'an operation without a response of success': (d) => rename(post(d).responses, '204', '500'),
  'an operationId used twice': (d) => (post(d).operationId = 'getThing'),
  'a parameter given twice': (d) => get(d).parameters.push(get(d).parameters[0]),
  'a tag that the document does not list': (d) => (post(d).tags = ['other']),
  'a path parameter that is not described': (d) => (get(d).parameters = []),
  'a path parameter that the path does not have': (d) => (get(d).parameters[0].name = 'other'),
  'two paths that differ by the name of a parameter only': (d) => {
    d.paths['/things/{other}'] = JSON.parse(
      JSON.stringify(d.paths['/things/{id}']).replaceAll('"id"', '"other"'),
    );
    d.paths['/things/{other}'].get.operationId = 'getOther';
  },
  'a choice given twice': (d) => (thing(d).properties.colour.enum = ['red', 'red']),
  'no description of the document': (d) => delete d.info.description,
  'no licence': (d) => delete d.info.license,
  'eval in a description': (d) => (post(d).description = 'Adds eval(1).'),
  'a script in a description': (d) => (post(d).description = 'Adds <script>1</script>.'),
  'a tag listed twice': (d) => d.tags.push(d.tags[0]),
  'no tags': (d) => delete d.tags,
  'an operation without a description': (d) => delete post(d).description,
  'an operation with an empty description': (d) => (post(d).description = ''),
  'an operation without an operationId': (d) => delete post(d).operationId,
  'an operationId that does not fit a URL': (d) => (post(d).operationId = 'add thing'),
  'an operation with two tags': (d) => {
    d.tags.push({ name: 'more', description: 'More.' });
    post(d).tags = ['things', 'more'];
  },
  'an operation without a tag': (d) => delete post(d).tags,
  'an operation with an empty list of tags': (d) => (post(d).tags = []),
  'a path with an empty parameter': (d) => rename(d.paths, '/things', '/things/{}'),
  'a path that ends with a slash': (d) => rename(d.paths, '/things', '/things/'),
  'a path with a query': (d) => rename(d.paths, '/things', '/things?all=1'),
  'a tag without a description': (d) => delete d.tags[0].description,
  'a list that says nothing of its items': (d) => delete thing(d).properties.parts.items,
  'a choice of another type': (d) => (thing(d).properties.colour.enum = ['red', 1]),
  'no servers': (d) => delete d.servers,
  'an example with a value and an address': (d) => {
    get(d).responses[200].content['application/json'].examples.one.externalValue = 'https://shop.test/one';
  },
  'a key that is not described': (d) => (d.security = [{ other: [] }]),
  'a parameter without a description': (d) => delete get(d).parameters[0].description,
  'the server example.com': (d) => (d.servers = [{ url: 'https://example.com' }]),
  'a server that ends with a slash': (d) => (d.servers = [{ url: 'https://shop.test/' }]),
  'an example that does not fit its media type': (d) => {
    get(d).responses[200].content['application/json'].examples.one.value = { size: 'big' };
  },
  'an example of a parameter that does not fit': (d) => (get(d).parameters[0].example = 'one'),
  'an example that does not fit its schema': (d) => (thing(d).properties.size.examples = ['big']),
  'a default that does not fit its schema': (d) => (thing(d).properties.size.default = 'big'),
  'a member that OpenAPI does not know': (d) => (post(d).sumary = 'Add'),
  'a reference to nothing': (d) => (thing(d).properties.parts.items = { $ref: '#/components/schemas/None' }),
  'a component that nothing uses': (d) => (d.components.schemas.Other = { type: 'string' }),
  'a server variable that is not described': (d) => delete d.servers[0].variables,
  'a server variable that the address does not have': (d) =>
    (d.servers[0].variables.other = { default: 'x' }),
  'a server variable whose default is no choice': (d) => (d.servers[0].variables.region.default = 'asia'),
  'a callback in a callback': (d) => {
    post(d).callbacks = structuredClone(callback);
    post(d).callbacks.sold['{$request.body#/url}'].post = {
      ...structuredClone(d.webhooks['thing.sold'].post),
      operationId: 'called',
      callbacks: structuredClone(callback),
    };
    post(d).callbacks.sold['{$request.body#/url}'].post.callbacks.sold['{$request.body#/url}'].post = {
      ...structuredClone(d.webhooks['thing.sold'].post),
      operationId: 'called2',
    };
  },
  'servers in a webhook': (d) => (d.webhooks['thing.sold'].servers = [{ url: 'https://shop.test' }]),
  'servers in an operation of a webhook': (d) =>
    (d.webhooks['thing.sold'].post.servers = [{ url: 'https://shop.test' }]),
  'a callback in a webhook': (d) => {
    d.webhooks['thing.sold'].post.callbacks = structuredClone(callback);
    d.webhooks['thing.sold'].post.callbacks.sold['{$request.body#/url}'].post = {
      ...structuredClone(d.webhooks['thing.sold'].post),
      callbacks: undefined,
      operationId: 'called',
    };
  },
};

test('the OpenAPI linter finds no fault in a valid document', async () => {
  expect(await openApiFaults(sound())).toEqual([]);
});

test.each(Object.entries(FAULTS))('the OpenAPI linter finds %s', async (_, plant) => {
  const document = sound();
  plant(document);
  expect(await openApiFaults(document)).not.toEqual([]);
});
