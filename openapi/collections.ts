/** Postman collections (format 2.1, which Bruno and Insomnia import, too), made of the OpenAPI documents. */
import converter from 'openapi-to-postmanv2';

interface Media {
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly schema: { readonly default?: unknown } }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> };
}

/** What is read of an OpenAPI document. */
interface Document {
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
type Members = { [name: string]: Json };

const SERVICE = 'http://127.0.0.1:8080';
const OPTIONS = {
  folderStrategy: 'Tags',
  requestNameSource: 'Fallback',
  alwaysInheritAuthentication: true,
  // Recursive schemas end there.
  stackLimit: 50,
} as const;

/** @param document an OpenAPI document, each of whose bodies has an example. The same document gives the same collection */
export async function collectionOf(document: object): Promise<object> {
  const input = { type: 'string', data: JSON.stringify(document) } as const;
  const converted = await new Promise<Members>((resolve, reject) => {
    converter.convertV2(input, OPTIONS, (error, result) => {
      const data = result?.output?.[0]?.data;
      if (error !== null || data === undefined) reject(new Error(error?.message ?? result?.reason));
      else resolve(data as unknown as Members);
    });
  });
  const { servers } = document as Document;
  const { _postman_id: _, ...info } = converted.info as Members;
  return {
    ...converted,
    info,
    item: itemsOf(converted.item as Members[], document as Document),
    variable: [
      { key: 'baseUrl', value: SERVICE + servers[0]!.url },
      { key: 'apiKey', value: '' },
    ],
  };
}

/** Folders and requests, without ids that are made anew each time. Answers stay in the OpenAPI document and the reference. */
function itemsOf(items: readonly Members[], document: Document): Members[] {
  return items.map(({ id: _id, response: _response, event: _event, ...item }) => {
    if (Array.isArray(item.item)) return { ...item, item: itemsOf(item.item as Members[], document) };
    return { ...item, request: requestOf(item.request as Members, document) };
  });
}

function requestOf({ url, body: _body, auth: _inherited, ...request }: Members, document: Document): Members {
  const { query, variable, ...place } = url as Members & { path: string[] };
  const path = `/${place.path.map((part) => part.replace(/^:(.*)$/, '{$1}')).join('/')}`;
  const operation = document.paths[path]?.[String(request.method).toLowerCase()];
  if (operation === undefined) throw new Error(`The document has no ${request.method} ${path}`);
  // The converter makes values up where a parameter has no default.
  const given = (list: Json | undefined): Members[] =>
    ((list ?? []) as Members[]).map((each) => {
      const value = operation.parameters?.find(({ name }) => name === each.key)?.schema.default;
      return { ...each, value: value === undefined ? '' : String(value) };
    });
  return {
    ...request,
    url: {
      ...place,
      query: given(query).map((each) => ({ ...each, disabled: true })),
      variable: given(variable),
    },
    ...bodyOf(operation),
  };
}

/** The example of the document. A request id is a new one each time it is sent. */
function bodyOf({ requestBody }: Operation): Members {
  if (requestBody === undefined) return {};
  const [media] = Object.values(requestBody.content);
  const example = media?.example ?? Object.values(media?.examples ?? {})[0]?.value;
  const raw = JSON.stringify(example, null, 2).replace(/("requestId": )"[^"]*"/, '$1"{{$guid}}"');
  return { body: { mode: 'raw', raw, options: { raw: { language: 'json' } } } };
}
