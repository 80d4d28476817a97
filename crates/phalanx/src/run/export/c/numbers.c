int phalanx_numbers(int agent)
{
    const struct network *network;
    if (!is_agent(agent) || agents[agent].kind != NUMBERS)
        return -1;
    network = agents[agent].network;
    return network->rows > 0 ? network->rows * network->row_layer.inputs : network->layer[0].inputs;
}

int phalanx_law_of_numbers(int agent, const float *numbers, double *probabilities)
{
    float x[WIDEST], y[WIDEST];
    const struct network *network;
    const struct layer *layer;
    int count = phalanx_numbers(agent), k;
    if (count < 0)
        return -1;
    network = agents[agent].network;
    layer = &network->row_layer;
    if (network->rows == 0)
        for (k = 0; k < count; k++)
            x[k] = numbers[k];
    for (k = 0; k < network->rows; k++) {
        apply(layer, numbers + k * layer->inputs, x + k * layer->outputs);
        cut_below_zero(x + k * layer->outputs, layer->outputs);
    }
    law_of_layers(&agents[agent], x, y, probabilities);
    return agents[agent].actions;
}
