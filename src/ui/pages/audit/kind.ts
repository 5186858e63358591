/** A resource at a moment, as the API returns it. */
export type Resource = Readonly<Record<string, unknown>>

export interface Kind {
  readonly text: string
  /** The operation; its last parameter in braces is the chosen id. */
  readonly operation: string
  /** The field that identifies a resource in a list. */
  readonly id: string
  /** The fields that name it, for people. */
  readonly names: readonly string[]
  /** The label of what must be chosen, such as a project. */
  readonly chosen?: string
  /** The reply is one resource. */
  readonly isOne?: true
  readonly isOperators?: true
  /** The kind for resources that this list lacks, because the service returns no past list of this length. */
  readonly narrower?: string
}
