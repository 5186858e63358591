export interface ReadModel {
  readonly name: string
  readonly version: number
  readonly state: 'building' | 'serving' | 'rebuilding'
  readonly behind: number | null
  readonly documents: number
  readonly rebuild: {
    readonly state: 'waiting' | 'building' | 'comparing' | 'replacing' | 'done' | 'failed'
    readonly requested_at: string
    readonly ended_at: string | null
    readonly behind: number | null
    readonly differences: number | null
    readonly error: string | null
  } | null
}
