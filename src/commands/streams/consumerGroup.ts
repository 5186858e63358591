/** The group of the event store that has the position of a consumer of the environment stream. */
export const consumerGroup = (env_id: string, name: string): string => `env-${env_id}-${name}`
