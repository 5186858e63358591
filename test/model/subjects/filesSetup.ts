export type FilesCommand =
  | { readonly op: 'store'; readonly path: string; readonly content: string }
  | { readonly op: 'read' | 'delete'; readonly path: string }
  | { readonly op: 'begin'; readonly upload: string; readonly path: string }
  | { readonly op: 'part'; readonly upload: string; readonly number: number; readonly content: string }
  | { readonly op: 'complete' | 'abort'; readonly upload: string }
  | { readonly op: 'expire' }

/** A part of 5 MB, which need not be the last; it is written short. */
export const LARGE = 'large'
