export type ProjectsCommand =
  | { readonly op: 'create'; readonly project: string; readonly name: string }
  | { readonly op: 'rename'; readonly project: string; readonly name: string }
  | { readonly op: 'network'; readonly project: string; readonly network: readonly string[] | null }
  | { readonly op: 'delete'; readonly project: string }
  | {
      readonly op: 'upload'
      readonly project: string
      readonly build: string
      readonly zip: Zip
      readonly live: boolean
    }
  | { readonly op: 'deploy'; readonly project: string; readonly build: string }
  | { readonly op: 'deleteBuild'; readonly project: string; readonly build: string }

/** The webhooks in each zip; the last one does not load. */
export const webhooksIn = { z0: [], z1: ['/a'], z2: ['/a', '/b'], z3: ['/b'], bad: null } as const
export type Zip = keyof typeof webhooksIn
export const PATHS = ['/a', '/b'] as const
