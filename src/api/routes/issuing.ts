/** The body limit of a request that issues a credential, because its permissions and metadata become one fact. */
export const MAX_ISSUE_BYTES = 64 << 10

/** Descriptions shared by sessions and service keys. */
export const ISSUING = 'Requires an API key, which can grant only permissions that it has itself.'
export const REVOKED =
  'Every node refuses the credential from the next request on, and the streams that it opened end.'
