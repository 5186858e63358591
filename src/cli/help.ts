export const SUMMARY =
  'svc operates a workflow execution service: it starts the service here, and reaches a running one by HTTP.'

export const ENVIRONMENT = `
Environment:
  SVC_URL             the service (default: http://HOST:PORT, as svc serve listens)
  SVC_OPERATOR_TOKEN  the operator token (default: from secrets.json in SVC_DATA_DIR, or derived from SVC_MASTER_KEY)
  SVC_KEY             the API key of an environment; SVC_API_KEY is its other name (default: in the same way)
  SVC_PROFILE         the profile of svc login that the commands of an environment use

In the folder of a running svc dev, commands reach that instance. Without one, they reach the default profile.

Exit codes: 0 done, 1 failed, 2 wrong usage`

export const examplesOf = (examples: readonly string[]): string =>
  ['\nExamples:', ...examples.map((example) => `  ${example}`)].join('\n')
