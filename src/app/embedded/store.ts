/** What the embedded stores have in common. */

export interface EmbeddedOptions {
  /** The data folder, an absolute real path whose lock the caller holds (see lockDataDir). */
  dataDir: string;
  /** Where a fetched server program is kept; may be shared by several data folders. */
  cacheDir: string;
  /** A line for the person who waits for the start. */
  progress: (line: string) => void;
  /** A line for the log: the server died, is back, had to be killed. */
  onEvent: (line: string) => void;
}

export interface EmbeddedStore {
  /** With the password; stays valid when the server is started again. */
  readonly url: string;
  /** The server's process id; undefined while it is down. */
  pid(): number | undefined;
  /** Ends the server in an orderly way, with a deadline; resolves when it is gone. */
  stop(): Promise<void>;
}
