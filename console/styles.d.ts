/** Style sheets that Vite bundles. */
declare module '*.css';
