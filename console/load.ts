/**
 * Loads the data of a page. Loads it again when its dependencies or the session change, and periodically on
 * request.
 */
import { useCallback, useContext, useEffect, useRef, useState } from 'preact/hooks';
import { Signed } from './session.js';

export interface Loaded<T> {
  readonly data: T | undefined;
  readonly error: unknown;
  /** Loads the data again immediately. */
  readonly reload: () => void;
}

/**
 * Loads data and returns its current state.
 *
 * @param read reads the data; throws ApiFault
 * @param everyMs interval between loads, in ms; undefined: loads once
 */
export function useLoad<T>(read: () => Promise<T>, depends: readonly unknown[], everyMs?: number): Loaded<T> {
  const [state, setState] = useState<{ data?: T; error?: unknown }>({});
  const [turn, setTurn] = useState(0);
  const latest = useRef(read);
  latest.current = read;
  const key = JSON.stringify(depends);
  const session = useContext(Signed)?.csrfToken;
  useEffect(() => setState({}), [key]);
  useEffect(() => {
    let isOver = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const load = async (): Promise<void> => {
      try {
        const data = await latest.current();
        if (!isOver) setState({ data });
      } catch (error) {
        if (!isOver) setState((known) => ({ ...known, error }));
      }
      if (!isOver && everyMs !== undefined) timer = setTimeout(load, everyMs);
    };
    void load();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [key, turn, everyMs, session]);
  const reload = useCallback(() => setTurn((before) => before + 1), []);
  return { data: state.data, error: state.error, reload };
}
