import type { ComponentType } from 'preact'

export interface PageProps {
  /** The parameters of the path. */
  readonly params: Readonly<Record<string, string>>
}

export interface Page {
  /** The text of its link and the beginning of its title. */
  readonly name: string
  /** Below `/ui`, with parameters such as `/runs/:run_id`. */
  readonly path: string
  readonly content: ComponentType<PageProps>
  /** The navigation has a link to it. */
  readonly isListed?: true
  /** The key after `g`. */
  readonly key?: string
  /** The permission without which the page shows nothing. */
  readonly needs?: { readonly type: string; readonly action: string }
  /** It requires the operator token. */
  readonly isOperators?: true
}
