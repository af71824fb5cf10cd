/**
 * HTTP requests that a server must frame correctly, with the behaviour of node:http and of uWebSockets.js for
 * each.
 */
import { SPIN_PATH } from '../../support/load.js';

export interface Framing {
  readonly name: string;
  readonly bytes: string;
  /**
   * Expected behaviour of node:http: the statuses of its answers, then `closed` or `open` for the connection,
   * or `waits` if the server awaits more of the request.
   */
  readonly node: string;
  /**
   * Expected behaviour of the binding of uWebSockets.js in the package uws-pack, in the same notation.
   * docs/production.md lists the differences. The newer binding differs in the cases of
   * {@link REFUSED_BY_NEWER_BINDING}.
   */
  readonly uws: string;
  /** The behaviour that h1spec considers right, if this is one of its 33 cases. */
  readonly h1spec?: H1spec;
}
type H1spec = 'waits' | 'served' | 'refused' | 'refused or 5xx';

/**
 * Names of the cases which the newer binding of uWebSockets.js (tools/bindings.mjs) refuses with 400 before
 * it closes the connection. Besides, it waits for the rest of a request line that is cut anywhere.
 */
export const REFUSED_BY_NEWER_BINDING: ReadonlySet<string> = new Set([
  'two Hosts',
  'a name with brackets',
  'a name with @',
  'a space before the colon',
  'a control character in a value',
  'a NUL in a value',
  'a line without a colon',
  'a line that is folded',
  'a space before the first name',
  'LF alone between headers',
  'CR alone behind the headers',
  'a space in the name of the length',
  'no request behind a GET',
  'no request behind a spin',
]);

const HOST = 'Host: localhost\r\n';
const get = (headers: string, target = '/healthz', version = 'HTTP/1.1'): string =>
  `GET ${target} ${version}\r\n${headers}\r\n`;
const whole = get(HOST);

const of = (name: string, bytes: string, node: string, uws = node, h1spec?: H1spec): Framing => ({
  name,
  bytes,
  node,
  uws,
  ...(h1spec === undefined ? {} : { h1spec }),
});
/** A request that is answered and leaves the connection open. */
const served = (name: string, bytes: string, uws = '200 open', h1spec?: H1spec): Framing =>
  of(name, bytes, '200 open', uws, h1spec);
/** A request that is refused and whose connection is closed. */
const refused = (name: string, bytes: string, uws = '400 closed', h1spec?: H1spec): Framing =>
  of(name, bytes, '400 closed', uws, h1spec);

/**
 * Incomplete requests. uWebSockets.js accepts them only if the method with its space arrives in one piece,
 * and everything behind the path in another.
 */
function cutCases(): Framing[] {
  const line = ['G', 'GET ', 'GET /healthz', 'GET /healthz ', 'GET /healthz HTTP', 'GET /healthz HTTP/1.1'];
  const head = [
    '\r',
    '\r\n',
    '\r\nHos',
    '\r\nHost:',
    '\r\nHost: ',
    '\r\nHost: localhost',
    '\r\nHost: localhost\r',
  ];
  const end = ['\r\nHost: localhost\r\n', '\r\nHost: localhost\r\n\r'];
  return [...line, ...[...head, ...end].map((more) => `GET /healthz HTTP/1.1${more}`)].map((bytes) => {
    const isCutInLine = /^GET (\/healthz [^\n]*)?$/.test(bytes);
    return of(
      `cut after ${JSON.stringify(bytes)}`,
      bytes,
      'waits',
      isCutInLine ? '505 closed' : 'waits',
      'waits',
    );
  });
}

function headCases(): Framing[] {
  const methods = ['PATCH', 'PURGE', 'SEARCH', 'LINK', 'TRACE'];
  return [
    of('two GETs', whole + whole, '200 200 open'),
    served('a GET', whole, '200 open', 'served'),
    served('a GET behind an empty line', `\r\n${whole}`, 'waits'),
    served('an empty value', get(`${HOST}X-Empty: \r\n`), '200 open', 'served'),
    served(
      'a tab before a value, any case of names',
      get('hoSt:\tlocalhost\r\nempty:\r\n'),
      '200 open',
      'served',
    ),
    served('Latin-1 in a value', get(`${HOST}X-Name: D\xfcsseldorf\r\n`)),
    served('an upgrade that nobody offers', get(`${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n`)),
    served('a query', get(HOST, '/healthz?a=b')),
    served('the absolute form', get(HOST, 'http://localhost/healthz'), '505 closed'),
    served(
      'HTTP/1.0 that keeps the connection',
      get(`${HOST}Connection: keep-alive\r\n`, '/healthz', 'HTTP/1.0'),
      '505 closed',
    ),
    of('HTTP/1.0', get(HOST, '/healthz', 'HTTP/1.0'), '200 closed', '505 closed'),
    of('Connection: close', get(`${HOST}Connection: close\r\n`), '200 closed'),
    of('Connection: close in a list', get(`${HOST}Connection: x, close\r\n`), '200 closed', '200 open'),
    of(
      'a GET that waits for 100 Continue',
      get(`${HOST}Expect: 100-continue\r\n`),
      '100 200 open',
      '100 200 open',
      'served',
    ),
    of('a GET that waits for 100 CONTINUE', get(`${HOST}Expect: 100-CONTINUE\r\n`), '100 200 open'),
    of('an expectation that nobody meets', get(`${HOST}Expect: 200-maybe\r\n`), '417 closed'),
    of(
      'two expectations',
      get(`${HOST}Expect: 100-continue\r\nExpect: x\r\n`),
      '417 closed',
      '100 417 closed',
    ),
    of('Connection: CLOSE', get(`${HOST}Connection: CLOSE\r\n`), '200 closed'),
    of('the asterisk form', `OPTIONS * HTTP/1.1\r\n${HOST}\r\n`, '204 open', '505 closed'),
    of('the method OPTIONS', `OPTIONS /healthz HTTP/1.1\r\n${HOST}\r\n`, '204 open'),
    of('a CONNECT', `CONNECT localhost:443 HTTP/1.1\r\n${HOST}\r\n`, 'closed', '505 closed'),
    ...methods.map((method) =>
      of(`the method ${method}`, `${method} /healthz HTTP/1.1\r\n${HOST}\r\n`, '404 open'),
    ),
  ];
}

/** Bytes that are not a valid HTTP request. */
function malformedCases(): Framing[] {
  return [
    refused('a method that does not exist', `MKCOLA / HTTP/1.1\r\n${HOST}\r\n`, '404 open'),
    refused('another protocol', `GET /healthz ICE/1.0\r\n${HOST}\r\n`, '505 closed'),
    refused(
      'a version that does not exist',
      get(HOST, '/healthz', 'HTTP/9.9'),
      '505 closed',
      'refused or 5xx',
    ),
    refused('no version', 'GET /healthz \r\n\r\n', '505 closed', 'refused or 5xx'),
    refused('text before the method', `Extra ${whole}`, '505 closed', 'refused or 5xx'),
    refused('the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', '505 closed'),
    refused('a TLS hello', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', '505 closed'),
    refused('no Host', get('X-Other: y\r\n'), '400 closed', 'refused'),
    refused('two Hosts', get(`${HOST}Host: other\r\n`) + whole, 'closed', 'refused'),
    refused('a name with brackets', get(`${HOST}X-Bad[]: x\r\n`), 'waits', 'refused'),
    refused('a name with @', get(`${HOST}X@: x\r\n`), 'waits'),
    refused('no name', get(`${HOST}: x\r\n`), '200 open'),
    refused('a space before the colon', get(`${HOST}X-Bad : x\r\n`), 'waits'),
    refused('a control character in a value', get(`${HOST}X-Bad: x\x07\r\n`), 'waits', 'refused'),
    refused('a NUL in a value', get(`${HOST}X-Bad: x\0y\r\n`), 'waits'),
    refused('a line without a colon', get(`${HOST}X-Bad\r\n`), 'waits'),
    refused('a line that is folded', get(`${HOST}X-Bad: x\r\n y\r\n`), 'waits'),
    refused('a space before the first name', get(` ${HOST}`), 'waits'),
    refused('CR alone between headers', get(`${HOST}X-Bad: x\rY: z\r\n`), 'waits'),
    refused('LF alone between headers', get(`${HOST}X-Bad: x\nY: z\r\n`), 'waits'),
    refused('LF alone everywhere', 'GET /healthz HTTP/1.1\nHost: localhost\n\n', '505 closed'),
    refused(
      'CR alone behind the headers',
      `GET /healthz HTTP/1.1\r\n${HOST}\rX: y\r\n\r\n`,
      'waits',
      'refused',
    ),
    refused('a space in the path', get(HOST, '/healthz x'), '505 closed'),
    refused('a control character in the path', get(HOST, '/healthz\x01'), '505 closed'),
  ];
}

const postOf =
  (key: string) =>
  (headers: string, content: string): string =>
    `POST ${SPIN_PATH} HTTP/1.1\r\n${HOST}X-API-Key: ${key}\r\n${headers}\r\n${content}`;

/** Requests whose head contains information about the body or the sender, such as Expect: 100-continue. */
function headedBodyCases(key: string, body: string): Framing[] {
  const post = postOf(key);
  const length = String(body.length);
  const size = body.length.toString(16);
  const chunks = `${size}\r\n${body}\r\n0\r\n\r\n`;
  return [
    served('Chunked', post('Transfer-Encoding: Chunked\r\n', chunks)),
    ...['100-continue', '100-Continue'].map((expect) =>
      of(
        `a POST that waits for ${expect}`,
        post(`Content-Length: ${length}\r\nExpect: ${expect}\r\n`, ''),
        '100 open',
      ),
    ),
    of(
      'a POST that waits for 100-Continue, without a right key',
      post(`Content-Length: ${length}\r\nExpect: 100-Continue\r\n`, '').replace(key, 'ks_wrong'),
      '401 closed',
    ),
    of(
      'chunks without an end and without a right key',
      post('Transfer-Encoding: chunked\r\n', `${size}\r\n${body}\r\n`).replace(key, 'ks_wrong'),
      '401 closed',
    ),
  ];
}

/**
 * Requests that differ in where the body ends. A request that follows a refused request must not be served.
 * @param body the body of a spin
 */
function bodyCases(key: string, body: string): Framing[] {
  const post = postOf(key);
  const sized = (length: string, content = body): string => post(`Content-Length:${length}\r\n`, content);
  const length = String(body.length);
  const size = body.length.toString(16);
  const chunks = `${size}\r\n${body}\r\n0\r\n\r\n`;
  const chunked = (content: string): string => post('Transfer-Encoding: chunked\r\n', content);
  const coded = (coding: string): string => post(`Transfer-Encoding: ${coding}\r\n`, chunks + whole);
  return [
    served('a POST', sized(` ${length}`), '200 open', 'served'),
    served('a length with zeros before it', sized(` 00${length}`)),
    served('spaces around a length', sized(`  ${length} `)),
    served('chunks', chunked(chunks), '200 open', 'served'),
    served(
      'chunks with upper case sizes and zeros',
      chunked(`00${size.toUpperCase()}\r\n${body}\r\n000\r\n\r\n`),
    ),
    served('a chunk with extensions', chunked(`${size};a=b;c="d e"\r\n${body}\r\n0;x\r\n\r\n`), '400 closed'),
    served('chunks with a trailer', chunked(`${size}\r\n${body}\r\n0\r\nX-Sum: 1\r\n\r\n`), '505 closed'),
    of('a GET behind a spin that waits', sized(` ${length}`) + whole, '200 200 open', 'closed'),
    of('a body that is not whole', sized(' 500'), 'waits'),
    of('chunks without an end', chunked(`${size}\r\n${body}\r\n`), 'waits'),
    refused('a length below zero', sized(' -5', whole), '400 closed', 'refused'),
    refused(
      'a length far below zero',
      sized(' -123456789123456789123456789', whole),
      '400 closed',
      'refused',
    ),
    refused('a length that is no number', sized(' abc', whole), '400 closed', 'refused'),
    refused('a length beyond any', sized(' 1000000000000000000000', whole)),
    refused('a length without a number', sized('', whole), 'closed'),
    refused('a length in two parts', sized(' 4 2', whole)),
    refused('a space in the name of the length', post(`Content-Length : ${length}\r\n`, body), 'waits'),
    refused('two lengths', sized(` 1\r\nContent-Length: ${length}`, body + whole), 'closed'),
    refused(
      'a length and chunks',
      sized(' 5\r\nTransFer-Encoding: chunked', chunks + whole),
      '400 closed',
      'refused',
    ),
    refused('identity and a length', sized(` ${length}\r\nTransfer-Encoding: identity`, body + whole)),
    refused('a coding that does not exist', coded('pigeons'), 'closed'),
    refused('chunked before another coding', coded('chunked, deflate'), 'closed'),
    refused('chunked behind another coding', coded('deflate, chunked'), 'closed'),
    refused('chunkedchunked', coded('chunkedchunked'), 'closed'),
    refused('chunks with a size that is no number', chunked(`xyz\r\n${body}\r\n0\r\n\r\n${whole}`)),
    refused('junk behind the size of a chunk', chunked(`${size} junk\r\n${body}\r\n0\r\n\r\n`), '200 open'),
    refused('LF alone behind the size of a chunk', chunked(`${size}\n${body}\r\n0\r\n\r\n`), '200 open'),
    refused('a chunk that is longer than its size', chunked(`1\r\n${body}\r\n0\r\n\r\n${whole}`)),
    refused('a chunk size beyond any', chunked(`fffffffffffffffff\r\n${body}\r\n0\r\n\r\n${whole}`)),
    of('no request behind a GET', `${whole}GET / HTTP/1.1\r\nX@: y\r\n\r\n`, '200 400 closed', '200 open'),
    of(
      'no request behind a spin',
      `${sized(` ${length}`)}GET / HTTP/1.1\r\nX@: y\r\n\r\n`,
      '200 400 closed',
      '200 open',
    ),
    of(
      'a request behind the last',
      get(`${HOST}Connection: close\r\n`) + whole,
      '200 closed',
      '200 200 open',
    ),
  ];
}

export const framingCases = (key: string, body: string): Framing[] => [
  ...cutCases(),
  ...headCases(),
  ...malformedCases(),
  ...bodyCases(key, body),
  ...headedBodyCases(key, body),
];
