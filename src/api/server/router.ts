/**
 * Finds the route of a request with the precedence of uWebSockets.js: first a pattern without parameters,
 * then a pattern with parameters (`/games/:id`), then the longest pattern that ends in `/*`. Among these, a
 * route for the method precedes a route for any method.
 */
import type { ServerRoute } from './listener.js';

interface Pattern {
  readonly route: ServerRoute;
  readonly segments: readonly string[];
}

const takes = ({ method }: ServerRoute, asked: string): boolean => method === asked || method === 'any';

/** Returns the method of the routes that answer a request. Routes for GET also answer HEAD. */
function methodOfRoutes(method: string): string {
  if (method === 'head') return 'get';
  return method === 'delete' ? 'del' : method;
}

export class Router {
  readonly #exact = new Map<string, ServerRoute>();
  /** Patterns with parameters, by method and number of segments. */
  readonly #patterns = new Map<string, Pattern[]>();
  /** Patterns that end in `/*`, longest first. */
  readonly #prefixes: { readonly route: ServerRoute; readonly prefix: string }[] = [];

  constructor(routes: readonly ServerRoute[]) {
    for (const route of routes) {
      const { method, pattern } = route;
      if (pattern.endsWith('/*')) {
        this.#prefixes.push({ route, prefix: pattern.slice(0, -1) });
      } else if (pattern.includes(':')) {
        const segments = pattern.split('/');
        const key = `${method} ${segments.length}`;
        const known = this.#patterns.get(key);
        if (known === undefined) this.#patterns.set(key, [{ route, segments }]);
        else known.push({ route, segments });
      } else this.#exact.set(`${method} ${pattern}`, route);
    }
    this.#prefixes.sort((a, b) => b.prefix.length - a.prefix.length);
  }

  /**
   * @param method in lower case
   * @param path not decoded, without the query
   */
  find(method: string, path: string): ServerRoute | undefined {
    const asked = methodOfRoutes(method);
    return (
      this.#exact.get(`${asked} ${path}`) ??
      this.#exact.get(`any ${path}`) ??
      this.#match(asked, path) ??
      this.#prefixes.find(({ route, prefix }) => takes(route, asked) && path.startsWith(prefix))?.route
    );
  }

  #match(method: string, path: string): ServerRoute | undefined {
    const parts = path.split('/');
    const patterns = this.#patterns.get(`${method} ${parts.length}`);
    return patterns?.find(({ segments }) =>
      segments.every((segment, place) =>
        segment.startsWith(':') ? parts[place] !== '' : segment === parts[place],
      ),
    )?.route;
  }
}
