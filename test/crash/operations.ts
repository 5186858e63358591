/** A change of files that a process has asked its system for, or a reply that a client may have received. */
export type Operation =
  | { readonly kind: 'open'; readonly handle: number; readonly path: string; readonly truncates: boolean }
  | { readonly kind: 'write'; readonly handle: number; readonly at: number | 'end'; readonly bytes: Buffer }
  | {
      readonly kind: 'copy'
      readonly from: { readonly handle: number; readonly at: number }
      readonly to: { readonly handle: number; readonly at: number }
      readonly length: number
    }
  | { readonly kind: 'resize'; readonly handle: number; readonly size: number }
  | { readonly kind: 'sync'; readonly handle: number }
  | { readonly kind: 'mkdir'; readonly path: string }
  | { readonly kind: 'rename'; readonly from: string; readonly to: string }
  | { readonly kind: 'link'; readonly from: string; readonly to: string }
  | { readonly kind: 'remove'; readonly path: string }
  | { readonly kind: 'reply'; readonly request_ids: readonly string[] }

/**
 * An operation begins when the process asks for it. Once it has ended, a sync that begins later covers it. One that the
 * death of its process has interrupted never ends.
 */
export type Step =
  | { readonly type: 'begin'; readonly id: number; readonly operation: Operation }
  | { readonly type: 'end'; readonly id: number }
