/** Permissions by name; the last ones are invalid. */
export type Grants = 'full' | 'runs' | 'projects' | 'wrong'

interface OnOne {
  /** The command that issued it: a name from an earlier moment, or `none`. */
  readonly id: string
}

export type CredentialsCommand =
  | { readonly op: 'createKey'; readonly own: string; readonly grants: Grants }
  | {
      readonly op: 'issue'
      readonly own: string
      readonly key: string
      readonly kind: Kind
      readonly grants: Grants
    }
  | ({ readonly op: 'changeKey'; readonly enabled: boolean; readonly grants: Grants | null } & OnOne)
  | ({ readonly op: 'deleteKey' | 'use' } & OnOne)
  | ({ readonly op: 'revoke'; readonly key: string; readonly kind: Kind } & OnOne)
  | { readonly op: 'revokeAll'; readonly key: string; readonly kind: Kind }

export type Kind = 'session' | 'service'
