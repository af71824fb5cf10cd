/** Type declaration for style sheets that Vite bundles. */
declare module '*.css';
