/* How many numbers the network of an agent reads; -1 if there is no such agent, or no such network. */
int phalanx_numbers(int agent);

/* Writes the probability of each action of an agent, given the numbers that its network reads. Returns how
   many actions there are; -1, and nothing is written, if there is no such agent, or no such network. */
int phalanx_law_of_numbers(int agent, const float *numbers, double *probabilities);

