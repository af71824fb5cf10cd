/** Types that all embedded stores share. */

export interface EmbeddedOptions {
  /** Absolute real path of the data folder. The caller must hold its lock (see lockDataDir). */
  dataDir: string;
  /** Folder for downloaded server programs. Several data folders may share it. */
  cacheDir: string;
  /** Shows a line to the person who waits for the start. */
  progress: (line: string) => void;
  /** Writes a line to the log when the server dies, is running again, or had to be killed. */
  onEvent: (line: string) => void;
}

export interface EmbeddedStore {
  /** URL of the embedded server, with the password. It stays valid after a restart of that server. */
  readonly url: string;
  /** Returns the server's process id, or undefined while the server is down. */
  pid(): number | undefined;
  /** Shuts the server down cleanly, with a deadline. Resolves when the server has ended. */
  stop(): Promise<void>;
}
